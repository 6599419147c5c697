import { onAbort, type AbortSignalLike } from './abort.ts'
import { sleep } from './clock.ts'

/** A reader took so long that items which it has not read are gone. */
class FellBehind extends Error {
  readonly code = 'FELL_BEHIND'
  constructor() {
    super('the reader has fallen behind')
  }
}

/** A reader is given what was added in this time together. */
const togetherMs = 100

/** The last items, and for readers that follow those that are added. */
export class RecentItems<T> {
  readonly #most: number
  /** A ring: the next one takes the place of the oldest. */
  readonly #ring: T[] = []
  /** How many were ever added. */
  #added = 0
  readonly #waiting = new Set<() => void>()

  constructor(most: number) {
    this.#most = most
  }

  add(item: T): void {
    this.#ring[this.#added % this.#most] = item
    this.#added += 1
    if (this.#waiting.size === 0) return
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  /** The oldest first. */
  get items(): readonly T[] {
    const oldest = this.#added % this.#most
    return this.#added <= this.#most
      ? this.#ring.slice()
      : [...this.#ring.slice(oldest), ...this.#ring.slice(0, oldest)]
  }

  /**
   * Yields the last items, and then those that are added, until `signal` aborts. Throws
   * `FellBehind` where the reader is slower than they come.
   */
  async *follow(signal: AbortSignalLike): AsyncGenerator<readonly T[]> {
    let read = this.#added - this.#ring.length
    while (!signal.aborted) {
      const unread = this.#added - read
      if (unread > this.#ring.length) throw new FellBehind()
      read = this.#added
      if (unread > 0) yield this.items.slice(-unread)
      else await this.#more(signal)
      await sleep(togetherMs)
    }
  }

  async #more(signal: AbortSignalLike): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    using _over = onAbort(signal, resolve)
    await promise
    this.#waiting.delete(resolve)
  }
}

/** The last lines of a text, within a number of lines and of characters. */
export class RecentLines {
  readonly #lines: string[] = []
  readonly #mostLines: number
  readonly #mostLength: number
  #length = 0

  constructor({ lines, length }: { readonly lines: number; readonly length: number }) {
    this.#mostLines = lines
    this.#mostLength = length
  }

  /** A line that alone is too long is left out. */
  add(line: string): void {
    if (line.length > this.#mostLength) return
    this.#lines.push(line)
    this.#length += line.length
    while (this.#lines.length > this.#mostLines || this.#length > this.#mostLength)
      this.#length -= this.#lines.shift()?.length ?? 0
  }

  /** The oldest first. */
  get lines(): readonly string[] {
    return this.#lines
  }
}
