import { after } from './clock.ts'

interface Repeating<T> {
  latest: T | undefined
  /** Occurrences since the last report. */
  times: number
  readonly over: Disposable
}

/**
 * Reports a repeated event at once, and then at most once per interval with the number of
 * occurrences.
 */
export class RepeatLimiter<T> implements Disposable {
  readonly #tell: (latest: T, times: number) => void
  readonly #ms: number
  readonly #repeating = new Map<string, Repeating<T>>()

  /** `ms`: the interval whose occurrences are reported together. */
  constructor(ms: number, tell: (latest: T, times: number) => void) {
    this.#ms = ms
    this.#tell = tell
  }

  /** `key` identifies equal events. */
  add(key: string, what: T): void {
    const before = this.#repeating.get(key)
    if (before) {
      before.latest = what
      before.times += 1
      return
    }
    this.#tell(what, 1)
    this.#begin(key)
  }

  has(key: string): boolean {
    return this.#repeating.has(key)
  }

  /** How many keys have limited reports now. */
  get size(): number {
    return this.#repeating.size
  }

  /** Reports what is pending. */
  [Symbol.dispose](): void {
    for (const [key, repeating] of this.#repeating) {
      repeating.over[Symbol.dispose]()
      this.#repeating.delete(key)
      this.#tellAll(repeating)
    }
  }

  #begin(key: string): void {
    const over = after(this.#ms, () => {
      const repeating = this.#repeating.get(key)
      this.#repeating.delete(key)
      if (!repeating || repeating.times === 0) return
      this.#tellAll(repeating)
      this.#begin(key)
    })
    this.#repeating.set(key, { latest: undefined, times: 0, over })
  }

  #tellAll({ latest, times }: Repeating<T>): void {
    if (times > 0) this.#tell(latest as T, times)
  }
}
