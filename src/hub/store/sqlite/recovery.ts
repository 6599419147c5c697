import { after } from '../../../base/clock.ts'
import type { Write } from './write-queue.ts'

/** Between two trials. */
const trialMs = 2_000
/** As much as most answers have: a disk that takes a few bytes more is as good as full. */
const trialBytes = 64 << 10

/**
 * Finds out when a store that refused a write takes writes again, though nobody may have any for
 * long: by a write of its own, until that is taken.
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

  /** A write was not taken. */
  failed(): void {
    this.#isFailing = true
    if (!this.#isOver) this.#next ??= after(trialMs, () => void this.#try())
  }

  /** Something has changed: another writer. */
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
    // What failed meanwhile calls for another.
    if (!this.#isFailing) this.#onRecovered()
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#next?.[Symbol.dispose]()
  }
}
