import { follow } from './abort.ts'
import { sleep } from './clock.ts'

/** The sleeps of one loop, each of which `wake` ends early. */
export class WakeableSleep {
  readonly #over: AbortSignal
  #awake = new AbortController()

  /** No sleep lasts once `over` has aborted. */
  constructor(over: AbortSignal) {
    this.#over = over
  }

  /** Resolves after `ms`, or at once where `wake` was called since the last sleep. */
  async sleep(ms: number): Promise<void> {
    using _over = follow(this.#over, this.#awake)
    await sleep(ms, this.#awake.signal)
    this.#awake = new AbortController()
  }

  /** Ends the present sleep, or the next one. */
  wake(): void {
    this.#awake.abort()
  }
}
