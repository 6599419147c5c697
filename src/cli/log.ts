import { constants, fstatSync, openSync } from 'node:fs'
import { destination, pino, stdSerializers, stdTimeFunctions, type LogFn, type Logger } from 'pino'
import { after } from '../base/clock.ts'
import { isExpectedFault } from '../base/expected-fault.ts'
import { RepeatLimiter } from '../base/repeat-limiter.ts'
import type { LogLevel } from '../config/config.ts'

/** Where log lines go. */
export interface LogSink {
  write(line: string): void
}

const redacted = '[redacted]'

/** What must not be logged under its own name, at the top or one level down. */
const secretNames = ['authorization', 'token', 'key', 'password', 'cookie', 'secret', 'joinToken']

/**
 * What must not be logged wherever it turns up: in a message, an error's text, a URL. Bearer
 * tokens, JSON web tokens, tokens carried as a WebSocket subprotocol, and private keys.
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

const scrubbed = (line: string): string =>
  secretShapes.reduce((text, [shape, instead]) => text.replace(shape, instead), line)

/**
 * A stack is for a mistake in a program; of a fault that the hub foresees the messages tell all
 * there is to know.
 */
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

/** A disk or a link that fails does so at every request. */
const togetherMs = 60_000

const { error, warn } = pino.levels.values

interface Line {
  readonly log: Logger
  readonly method: LogFn
  readonly args: Parameters<LogFn>
}

/**
 * What is the same fault again: by its message, its kind, and the resource it is about.
 * `undefined`: no fault that was foreseen.
 */
function keyOf([fields, message]: readonly unknown[]): string | undefined {
  if (typeof fields !== 'object' || fields === null || !('err' in fields)) return undefined
  if (!(fields.err instanceof Error) || !isExpectedFault(fields.err)) return undefined
  const { kind, resource } = fields as { readonly kind?: unknown; readonly resource?: unknown }
  return JSON.stringify([message, kind, resource])
}

/**
 * JSON lines of one shape: time, level, message and what belongs to it; nothing secret in any of
 * them, and a stack only where the hub did not foresee what failed. Errors and warnings of a fault
 * that was foreseen are told at once, and then no more than once in `together` milliseconds, with
 * the latest and how many `times`.
 */
export function createLog(level: LogLevel, sink: LogSink, together = togetherMs): Logger {
  const repeated = new RepeatLimiter<Line>(together, ({ log, method, args }, times) => {
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

/** Lines that are not written yet, in bytes: further ones are dropped. */
const mostUnread = 4 * 1024 * 1024

export interface StandardError extends LogSink {
  /** Resolves when every line is written, or no reader is left (true), or after `ms` (false). */
  written(ms: number): Promise<boolean>
}

/**
 * Standard error, written to without waiting, so that a reader who has stopped reading does not
 * stop the hub: past 4 MiB unread, lines are dropped. A disk that takes no lines, or a reader that
 * is gone, loses them and does no more harm.
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
  // pino would write what is left while the process exits, and wait for the reader: for ever, where
  // it has stopped reading.
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
 * Another descriptor of the same pipe, on which a write fails rather than waits. On the one that
 * the process was given it would hold a thread until the reader reads, and making that one
 * non-blocking would do so for all processes that share it. A socket cannot be opened again, nor,
 * by some users, a pipe: then the one that was given.
 */
function withoutBlocking(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return fd
  }
}
