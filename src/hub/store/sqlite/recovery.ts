import { after } from '../../../base/clock.ts'
import type { Write } from './write-queue.ts'

/** Between two test writes. */
const trialMs = 2_000
/** The size of most answers: a disk that takes only a few bytes is as good as full. */
const trialBytes = 64 << 10

/**
 * Finds out when a store that refused a write takes writes again, even if no caller writes: by a
 * test write, repeated until it is taken.
 */
export class Recovery implements Disposable {
  readonly #push: (write: Write) => Promise<unknown>
  readonly #onRecovered: () => void
  #next: Disposable | undefined
  #isFailing = false
  #isOver = false

  constructor(push: (write: Write) => Promise<unknown>, onRecovered: () => void) {
    this.#push = push
    this.#onRecovered = onRecovered
  }

  /** A write failed. */
  failed(): void {
    this.#isFailing = true
    if (!this.#isOver) this.#next ??= after(trialMs, () => void this.#try())
  }

  /** Another writer has started. */
  tryNow(): void {
    if (this.#isFailing) void this.#try()
  }

  async #try(): Promise<void> {
    this.#next?.[Symbol.dispose]()
    this.#next = undefined
    this.#isFailing = false
    try {
      await this.#push({ operation: () => ({ kind: 'trial', bytes: trialBytes }), bytes: 0 })
    } catch {
      this.failed()
      return
    }
    // A write that failed during the test calls for another one.
    if (!this.#isFailing) this.#onRecovered()
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#next?.[Symbol.dispose]()
  }
}
