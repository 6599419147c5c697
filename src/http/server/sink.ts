import type { Writable } from 'node:stream'
import type { Sink } from '../exchange/exchange.ts'
import { drainedOf } from './drained.ts'
import { limits } from './limits.ts'

export interface SinkCallbacks {
  /** Called with the cause when an answer fails while its client is still connected. */
  readonly onBroken: (cause: unknown) => void
  /** Called when the client has taken something written. */
  readonly onTaken: () => void
}

export interface SinkOptions extends SinkCallbacks {
  /** Alternating names and values, which follow what has been written. */
  readonly trailers: (raw: readonly string[]) => void
  /** Aborts the answer so that the client detects the truncation. */
  readonly breakOff: (cause: Error) => void
}

/** A Sink over a stream whose head is set, and is sent with the first bytes. */
export function streamSink(
  stream: Writable,
  { trailers, breakOff, onBroken, onTaken }: SinkOptions,
): Sink & { started(): boolean } {
  let started = false
  return {
    started: () => started,
    write: (chunk, onWritten) => {
      started = true
      stream.write(chunk, (failure) => {
        onTaken()
        // A stream of HTTP/2 that was reset reports no failure for what may still be on its way.
        if (!failure && !stream.destroyed) onWritten?.()
      })
      return stream.writableLength < limits.answerBytes
    },
    drained: drainedOf(stream),
    end: (raw) => {
      started = true
      if (raw && raw.length > 0) trailers(raw)
      stream.end()
    },
    fail: (cause) => {
      started = true
      // A destroyed stream means that the client disconnected, which is no failure.
      if (!stream.destroyed) onBroken(cause)
      breakOff(cause)
    },
  }
}
