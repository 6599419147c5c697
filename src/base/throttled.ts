import { elapsed } from './clock.ts'

/** The part of the time that computing may take. */
export const maxComputingShare = 0.1

/**
 * A costly value for many callers, who can do with one that is a little old. It is computed at most
 * once in `leastMs`, and takes a tenth of the time at most. Callers during a computation share it;
 * callers between two are given the result of the last one, a failure included.
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
