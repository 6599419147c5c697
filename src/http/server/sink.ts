import type { Writable } from 'node:stream'
import type { Sink } from '../exchange/exchange.ts'
import { limits } from './limits.ts'

export interface SinkCallbacks {
  /** Called with the cause when an answer fails while its client is still connected. */
  readonly onBroken: (cause: unknown) => void
  /** Called with the bytes of each part as it is written. */
  readonly wrote: (bytes: number) => void
  /** Called when the client has taken something written; absent: no one waits for that. */
  readonly onTaken?: () => void
}

export interface SinkOptions extends SinkCallbacks {
  /** Alternating names and values, which follow what has been written. */
  readonly trailers: (raw: readonly string[]) => void
  /** Aborts the answer so that the client detects the truncation. */
  readonly breakOff: (cause: Error) => void
}

/** A Sink over a stream whose head is set, and is sent with the first bytes. */
export class StreamSink implements Sink {
  readonly #stream: Writable
  readonly #options: SinkOptions
  #drained: (() => Promise<void>) | undefined
  #started = false
  #failed = false

  constructor(stream: Writable, options: SinkOptions) {
    this.#stream = stream
    this.#options = options
  }

  get started(): boolean {
    return this.#started
  }

  write(chunk: Uint8Array, onWritten?: () => void): boolean {
    this.#started = true
    const stream = this.#stream
    this.#options.wrote(chunk.byteLength)
    const { onTaken } = this.#options
    if (onWritten === undefined) stream.write(chunk, onTaken)
    else
      stream.write(chunk, (failure) => {
        onTaken?.()
        // A stream of HTTP/2 that was reset reports no failure for what may still be on its way.
        if (!failure && !stream.destroyed) onWritten()
      })
    return stream.writableLength < limits.answerBytes
  }

  drained(): Promise<void> {
    return (this.#drained ??= drainedOf(this.#stream))()
  }

  end(trailers?: readonly string[]): void {
    this.#started = true
    if (trailers && trailers.length > 0) this.#options.trailers(trailers)
    this.#stream.end()
  }

  fail(cause: Error): void {
    this.#started = true
    // A destroyed stream means that the client disconnected, which is no failure.
    if (!this.#stream.destroyed && !this.#failed) this.#options.onBroken(cause)
    this.#failed = true
    this.#options.breakOff(cause)
  }
}

/**
 * Resolves when the stream accepts more, or is closed. All calls meanwhile share one promise: a
 * source that has to stop may still have many chunks to write, and calls this after each.
 */
function drainedOf(stream: Writable): () => Promise<void> {
  let waiting: Promise<void> | undefined
  return () => {
    if (stream.destroyed || !stream.writableNeedDrain) return Promise.resolve()
    waiting ??= new Promise((resolve) => {
      const go = (): void => {
        stream.off('drain', go)
        stream.off('close', go)
        waiting = undefined
        resolve()
      }
      stream.on('drain', go)
      stream.on('close', go)
    })
    return waiting
  }
}
