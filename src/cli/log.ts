import { destination, pino, stdSerializers, stdTimeFunctions, type Logger } from 'pino'
import type { LogLevel } from '../config/config.ts'

/** Where log lines go. */
export interface LogSink {
  write(line: string): void
}

const redacted = '[redacted]'

/** What must not be logged under its own name, at the top or one level down. */
const secretNames = ['authorization', 'token', 'key', 'password', 'cookie', 'secret', 'joinToken']

/**
 * What must not be logged wherever it turns up: in a message, an error's text, a URL. Bearer tokens, JSON web tokens, tokens carried
 * as a WebSocket subprotocol, and private keys.
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

/** JSON lines of one shape: time, level, message and what belongs to it; nothing secret in any of them. */
export function createLog(level: LogLevel, sink: LogSink): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: stdSerializers.errWithCause },
      redact: { paths: secretNames.flatMap((name) => [name, `*.${name}`]), censor: redacted },
      hooks: { streamWrite: scrubbed },
    },
    sink,
  )
}

/**
 * Standard error, written to without waiting, so that a reader who has stopped reading does not stop the hub: past 4 MiB unread,
 * lines are dropped. `flush` writes what is left, at the end.
 */
export function standardError(): LogSink & { flush(): void } {
  const stream = destination({ fd: 2, sync: false, maxLength: 4 * 1024 * 1024 })
  return {
    write: (line) => void stream.write(line),
    flush() {
      try {
        stream.flushSync()
      } catch {
        // Nobody reads any more: there is no one left to tell.
      }
    },
  }
}
