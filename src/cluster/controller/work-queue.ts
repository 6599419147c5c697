import { after, jitter } from '../../base/clock.ts'

export interface WorkQueueOptions {
  /** How many keys are worked on at a time; one key never twice at a time. */
  readonly workers: number
  /** Keys wait until it resolves. */
  readonly after: Promise<unknown>
  /**
   * Processes a key. Resolves to the time after which it is processed again, if it is. A rejection
   * is retried with backoff.
   */
  readonly act: (key: string) => Promise<number | undefined>
  readonly onFailure: (key: string, cause: unknown) => void
}

/** After a failure, doubled with each further one. */
const firstWaitMs = 500
const longestWaitMs = 60_000

/**
 * Keys that something is to be done about, in the order they came. A key that comes again while it
 * waits is not there twice; one that comes while it is worked on is worked on once more. As
 * client-go's util/workqueue.
 */
export class WorkQueue implements AsyncDisposable {
  readonly #options: WorkQueueOptions
  readonly #waiting = new Set<string>()
  readonly #working = new Map<string, Promise<void>>()
  readonly #again = new Set<string>()
  readonly #failures = new Map<string, number>()
  readonly #later = new Map<string, Disposable>()
  #isOpen = false
  #stopped = false

  constructor(options: WorkQueueOptions) {
    this.#options = options
    void options.after.then(() => {
      this.#isOpen = true
      this.#next()
    })
  }

  /** How many wait to be worked on, or are worked on. */
  get depth(): number {
    return this.#waiting.size + this.#working.size
  }

  add(key: string): void {
    if (this.#stopped) return
    this.#later.get(key)?.[Symbol.dispose]()
    this.#later.delete(key)
    if (this.#working.has(key)) this.#again.add(key)
    else this.#waiting.add(key)
    this.#next()
  }

  #addLater(key: string, ms: number): void {
    if (this.#stopped || this.#again.has(key) || this.#waiting.has(key)) return
    this.#later.get(key)?.[Symbol.dispose]()
    this.#later.set(
      key,
      after(ms, () => this.add(key)),
    )
  }

  #next(): void {
    while (this.#isOpen && !this.#stopped && this.#working.size < this.#options.workers) {
      const [key] = this.#waiting
      if (key === undefined) break
      this.#waiting.delete(key)
      this.#working.set(key, this.#work(key))
    }
  }

  async #work(key: string): Promise<void> {
    let later: number | undefined
    try {
      later = await this.#options.act(key)
      this.#failures.delete(key)
    } catch (cause) {
      later = this.#waitAfterFailure(key)
      if (!this.#stopped) this.#options.onFailure(key, cause)
    }
    this.#working.delete(key)
    if (this.#again.delete(key)) this.add(key)
    else if (later !== undefined) this.#addLater(key, later)
    this.#next()
  }

  #waitAfterFailure(key: string): number {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    return Math.min(firstWaitMs * 2 ** Math.min(failures, 20), longestWaitMs) * jitter(1, 1.5)
  }

  /** Starts nothing more, and resolves when the keys under way are done. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true
    this.#waiting.clear()
    for (const timer of this.#later.values()) timer[Symbol.dispose]()
    this.#later.clear()
    await Promise.all(this.#working.values())
  }
}
