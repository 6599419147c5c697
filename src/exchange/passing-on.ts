import type { Sink } from './exchange.ts'

/** The rest of a sink, for a layer that puts its own `write` before that of `sink`. */
export const passingOn = (sink: Sink): Omit<Sink, 'write'> => ({
  drained: () => sink.drained(),
  end: (trailers) => sink.end(trailers),
  fail: (cause) => sink.fail(cause),
})
