import type { Writable } from 'node:stream'

/**
 * Resolves when the stream accepts more, or is closed. All calls meanwhile share one promise: a
 * source that has to stop may still have many chunks to write, and calls this after each.
 */
export function drainedOf(stream: Writable): () => Promise<void> {
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
