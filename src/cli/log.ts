import { constants, fstatSync, openSync } from 'node:fs'
import { destination, pino, stdSerializers, stdTimeFunctions, type LogFn, type Logger } from 'pino'
import { after } from '../base/clock.ts'
import { isExpectedFault } from '../base/expected-fault.ts'
import { RepeatLimiter } from '../base/repeat-limiter.ts'
import type { RecentLines } from '../base/recent-items.ts'
import type { LogLevel } from '../config/config.ts'

/** Where log lines go. */
export interface LogSink {
  write(line: string): void
}

/** The last lines that the status document has. */
export const recentLogBounds = { lines: 200, length: 64 * 1024 }

/** A sink that keeps the last lines as well. */
export const alsoTo = (recent: RecentLines, sink: LogSink): LogSink => ({
  write: (line) => {
    recent.add(line)
    sink.write(line)
  },
})

const redacted = '[redacted]'

/** Names of fields that are redacted, at the top or one level down. */
const secretNames = ['authorization', 'token', 'key', 'password', 'cookie', 'secret', 'joinToken']

/**
 * Secrets that are redacted in any text (a message, an error, a URL): bearer tokens, JSON web
 * tokens, tokens in a WebSocket subprotocol, and private keys.
 */
const secretShapes: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer)\s+[\w.~+/-]+=*/gi, `$1 ${redacted}`],
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, redacted],
  [
    /base64url\.bearer\.authorization\.k8s\.io\.[\w-]+/g,
    `base64url.bearer.authorization.k8s.io.${redacted}`,
  ],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/gs, redacted],
]

/** A text without what looks like a secret. */
export const scrubbed = (line: string): string =>
  secretShapes.reduce((text, [shape, instead]) => text.replace(shape, instead), line)

/** Only mistakes in the program have a stack; of an expected fault the messages are sufficient. */
function serialized(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  if (!isExpectedFault(error)) return stdSerializers.errWithCause(error)
  return withoutStack(error)
}

function withoutStack(error: Error): object {
  const { name, message, cause } = error
  const { code } = error as NodeJS.ErrnoException
  return {
    type: name,
    ...(code !== undefined && { code }),
    message,
    ...(cause !== undefined && { cause: cause instanceof Error ? withoutStack(cause) : cause }),
  }
}

/** A failing disk or link fails at every request. */
const togetherMs = 60_000

const { error, warn } = pino.levels.values

interface Line {
  readonly log: Logger
  readonly method: LogFn
  readonly args: Parameters<LogFn>
}

/**
 * The key of a repeated fault: message, kind, resource and filter, which fails at thousands of
 * objects in a list. `undefined` for other log lines.
 */
function keyOf([fields, message]: readonly unknown[]): string | undefined {
  if (typeof fields !== 'object' || fields === null || !('err' in fields)) return undefined
  const { err, kind, resource, filter } = fields as Readonly<Record<string, unknown>>
  const isExpected = err instanceof Error && isExpectedFault(err)
  if (!isExpected && filter === undefined) return undefined
  return JSON.stringify([message, kind, resource, filter])
}

/**
 * A logger of JSON lines (time, level, message, fields) that redacts secrets and has a stack only
 * for unexpected errors. An error or warning of an expected fault, or of a filter, is logged at
 * once, and its repetitions at most once a minute, with the latest fields and their number in
 * `times`.
 */
export function createLog(level: LogLevel, sink: LogSink): Logger {
  const repeated = new RepeatLimiter<Line>(togetherMs, ({ log, method, args }, times) => {
    const [fields, ...rest] = args
    method.apply(log, [times === 1 ? fields : { ...(fields as object), times }, ...rest])
  })
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: serialized },
      redact: { paths: secretNames.flatMap((name) => [name, `*.${name}`]), censor: redacted },
      hooks: {
        streamWrite: scrubbed,
        logMethod(args, method, level) {
          const key = level === error || level === warn ? keyOf(args) : undefined
          if (key === undefined) method.apply(this, args)
          else repeated.add(key, { log: this, method, args })
        },
      },
    },
    sink,
  )
}

/** Bytes of unwritten lines: further lines are dropped. */
const mostUnread = 4 * 1024 * 1024

export interface StandardError extends LogSink {
  /**
   * Resolves to `true` when every line is written or there is no reader, and to `false` after `ms`.
   */
  written(ms: number): Promise<boolean>
}

/**
 * Standard error, written without blocking: a stalled reader does not stop the hub. Beyond 4 MiB
 * unread, lines are dropped. A full disk or a missing reader loses lines, with no other effect.
 */
export function standardError(): StandardError {
  const stream = destination({ fd: withoutBlocking(2), sync: false, maxLength: mostUnread })
  let pending = false
  let onSettled = (): void => undefined
  const settled = (): void => {
    pending = false
    onSettled()
  }
  stream.on('drain', settled)
  stream.on('error', settled)
  // pino would flush at exit and block for ever on a stalled reader.
  stream.flushSync = () => undefined
  return {
    write(line) {
      pending = true
      stream.write(line)
    },
    async written(ms) {
      if (!pending) return true
      const { promise, resolve } = Promise.withResolvers<boolean>()
      using _late = after(ms, () => resolve(false))
      onSettled = () => resolve(true)
      return await promise
    },
  }
}

/**
 * Another descriptor of the same pipe, on which writes fail rather than block. The original would
 * block a thread until the reader reads, and setting O_NONBLOCK on it would affect all processes
 * that share it. A socket, and for some users a pipe, cannot be opened again: then the original.
 */
function withoutBlocking(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return fd
  }
}
