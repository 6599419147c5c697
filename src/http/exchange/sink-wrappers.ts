import type { ByteSource, Sink } from './exchange.ts'

/** The methods of a sink, for a layer that replaces some of them. */
export const delegateTo = (sink: Sink): Sink => ({
  write: (chunk, onWritten) => sink.write(chunk, onWritten),
  drained: () => sink.drained(),
  end: (trailers) => sink.end(trailers),
  fail: (cause) => sink.fail(cause),
})

/** The same bytes; calls `count` with the length of each chunk before it is written. */
export const metered =
  (source: ByteSource, count: (bytes: number) => void): ByteSource =>
  (sink) =>
    source(new MeteredSink(sink, count))

class MeteredSink implements Sink {
  readonly #sink: Sink
  readonly #count: (bytes: number) => void

  constructor(sink: Sink, count: (bytes: number) => void) {
    this.#sink = sink
    this.#count = count
  }

  write(chunk: Uint8Array, onWritten?: () => void): boolean {
    this.#count(chunk.byteLength)
    return this.#sink.write(chunk, onWritten)
  }

  drained(): Promise<void> {
    return this.#sink.drained()
  }

  end(trailers?: readonly string[]): void {
    this.#sink.end(trailers)
  }

  fail(cause: Error): void {
    this.#sink.fail(cause)
  }
}
