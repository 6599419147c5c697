import { after } from './clock.ts'

interface Repeating<T> {
  latest: T | undefined
  /** How often it has happened since it was last told. */
  times: number
  readonly over: Disposable
}

/**
 * What happens again and again is told at once, and then no more than once in a time, with how
 * often it has happened meanwhile.
 */
export class RepeatLimiter<T> implements Disposable {
  readonly #tell: (latest: T, times: number) => void
  readonly #ms: number
  readonly #repeating = new Map<string, Repeating<T>>()

  /** `ms`: what comes within it is told together. */
  constructor(ms: number, tell: (latest: T, times: number) => void) {
    this.#ms = ms
    this.#tell = tell
  }

  /** `key`: what counts as the same. */
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

  /** Of all that is told no more than once in a time at present. */
  keys(): string[] {
    return [...this.#repeating.keys()]
  }

  /** What was not told yet is. */
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
