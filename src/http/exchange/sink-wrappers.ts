import type { Sink } from './exchange.ts'

/** The methods of a sink, for a layer that replaces some of them. */
export const delegateTo = (sink: Sink): Sink => ({
  write: (chunk, onWritten) => sink.write(chunk, onWritten),
  drained: () => sink.drained(),
  end: (trailers) => sink.end(trailers),
  fail: (cause) => sink.fail(cause),
})
