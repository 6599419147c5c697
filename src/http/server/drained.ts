import type { Writable } from 'node:stream'

/**
 * Resolves when the stream has room again, or is gone. All who ask meanwhile share one promise: a
 * source that is told to stop may still have many chunks on the way, and asks after each.
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
