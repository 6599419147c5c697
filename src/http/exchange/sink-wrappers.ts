import type { ByteSource, Sink } from './exchange.ts'

/** The rest of a sink, for a layer that puts its own `write` before that of `sink`. */
export const delegateTo = (sink: Sink): Omit<Sink, 'write'> => ({
  drained: () => sink.drained(),
  end: (trailers) => sink.end(trailers),
  fail: (cause) => sink.fail(cause),
})

/** The same bytes; `count` is told how many each chunk has, before the chunk is written on. */
export const metered =
  (source: ByteSource, count: (bytes: number) => void): ByteSource =>
  (sink) =>
    source({
      ...delegateTo(sink),
      write: (chunk) => {
        count(chunk.byteLength)
        return sink.write(chunk)
      },
    })
