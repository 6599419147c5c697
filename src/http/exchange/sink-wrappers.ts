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
    source({
      ...delegateTo(sink),
      write: (chunk, onWritten) => {
        count(chunk.byteLength)
        return sink.write(chunk, onWritten)
      },
    })
