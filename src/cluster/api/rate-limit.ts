import { elapsed, sleep } from '../../base/clock.ts'

/**
 * A bucket of `burst` permissions that fills by `perSecond`, as client-go's flow control; first
 * come, first served.
 */
export class RateLimit {
  readonly #perSecond: number
  readonly #burst: number
  #left: number
  #at = elapsed()

  constructor(perSecond: number, burst: number) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#left = burst
  }

  /**
   * Resolves when a request may be sent, or at once when `signal` aborts: callers check their
   * signal.
   */
  async take(signal?: AbortSignal): Promise<void> {
    const now = elapsed()
    this.#left = Math.min(this.#burst, this.#left + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
    // A permission is taken before it is there, so that the next caller waits longer.
    this.#left -= 1
    if (this.#left < 0) await sleep((-this.#left / this.#perSecond) * 1000, signal)
  }
}
