import { elapsed } from '../../../base/clock.ts'

interface Watcher {
  open: number
  /** When it last had a watch, by the clock that never goes back. */
  at: number
}

/**
 * Readers choose what they call themselves: beyond so many, those that are long gone are forgotten
 * with each that comes.
 */
const mostReaders = 256

/** Which readers watch a collection, here or by watches of their own, and which did so lately. */
export class RecentWatchers {
  readonly #rememberedMs: number
  readonly #readers = new Map<string, Watcher>()

  constructor(rememberedMs: number) {
    this.#rememberedMs = rememberedMs
  }

  /** A watch of `reader` is open until this is disposed of. */
  join(reader: string): Disposable {
    if (this.#readers.size >= mostReaders) this.hasOthers(reader)
    const known = this.#readers.get(reader) ?? { open: 0, at: 0 }
    known.open += 1
    this.#readers.set(reader, known)
    let open = true
    return {
      [Symbol.dispose]: () => {
        if (!open) return
        open = false
        known.open -= 1
        known.at = elapsed()
      },
    }
  }

  /** Whether anybody but `reader` watches the collection, or has done so lately. */
  hasOthers(reader: string): boolean {
    let others = false
    for (const [each, { open, at }] of this.#readers) {
      if (open > 0 || elapsed() - at < this.#rememberedMs) others ||= each !== reader
      else this.#readers.delete(each)
    }
    return others
  }
}
