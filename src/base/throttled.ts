import { elapsed } from './clock.ts'

/** The share of the time that the computation may take. */
export const maxComputingShare = 0.1

/**
 * An expensive value for many callers that may be a little old. It is computed at most once per
 * `leastMs` and for a tenth of the time at most. Callers during a computation share it; later
 * callers get the last result, a failure included.
 */
export class Throttled<T> {
  readonly #compute: () => Promise<T>
  readonly #leastMs: number
  #last: Promise<T> | undefined
  #dueAt = 0

  constructor(compute: () => Promise<T>, leastMs: number) {
    this.#compute = compute
    this.#leastMs = leastMs
  }

  get(): Promise<T> {
    if (this.#last && elapsed() < this.#dueAt) return this.#last
    const began = elapsed()
    this.#dueAt = Infinity
    this.#last = this.#compute().finally(() => {
      const ended = elapsed()
      this.#dueAt = ended + Math.max((ended - began) / maxComputingShare, this.#leastMs)
    })
    return this.#last
  }
}
