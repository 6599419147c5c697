import { elapsed } from '../../../base/clock.ts'

interface Watcher {
  open: number
  /** When its last watch ended, by the monotonic clock. */
  at: number
}

/**
 * Clients choose their own names: beyond so many, each new one removes those without a recent
 * watch.
 */
const mostReaders = 256

/**
 * Which clients watch a collection, here or by upstream watches of their own, and which did so
 * lately.
 */
export class RecentWatchers {
  readonly #rememberedMs: number
  readonly #readers = new Map<string, Watcher>()

  constructor(rememberedMs: number) {
    this.#rememberedMs = rememberedMs
  }

  /** Counts a watch of `reader` until disposed. */
  join(reader: string): Disposable {
    if (this.#readers.size >= mostReaders) this.hasOthers(reader)
    const watcher = this.#readers.get(reader) ?? { open: 0, at: 0 }
    watcher.open += 1
    this.#readers.set(reader, watcher)
    let open = true
    return {
      [Symbol.dispose]: () => {
        if (!open) return
        open = false
        watcher.open -= 1
        watcher.at = elapsed()
      },
    }
  }

  /** Whether a client other than `reader` watches the collection, or did so lately. */
  hasOthers(reader: string): boolean {
    let others = false
    for (const [each, { open, at }] of this.#readers) {
      if (open > 0 || elapsed() - at < this.#rememberedMs) others ||= each !== reader
      else this.#readers.delete(each)
    }
    return others
  }
}
