import { elapsed, sleep } from '../../base/clock.ts'

/**
 * A bucket of `burst` permissions that fills by `perSecond`, as client-go's flow control has it;
 * who comes first is served first.
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
   * Resolves when a request may be sent, or at once when `signal` aborts: callers look at their
   * signal.
   */
  async take(signal?: AbortSignal): Promise<void> {
    const now = elapsed()
    this.#left = Math.min(this.#burst, this.#left + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
    // What is taken before it is there is waited for: the next one waits longer.
    this.#left -= 1
    if (this.#left < 0) await sleep((-this.#left / this.#perSecond) * 1000, signal)
  }
}
