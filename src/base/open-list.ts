/**
 * What is under way, the oldest first: requests, answers, listeners that live as long as one of
 * them. A Set or Map would do the same and leave a table behind for every few dozen additions, with
 * what was in it: once such a table is old, V8's scavenger keeps all that it names, and a third of
 * what each GET allocates had to wait for a full collection.
 */
export class OpenList<T extends object> implements Iterable<T> {
  readonly #items: (T | undefined)[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  add(item: T): void {
    this.#items[this.#size++] = item
  }

  /** Whether it was there. */
  delete(item: T): boolean {
    const items = this.#items
    // Most of what ends has begun lately.
    let at = this.#size - 1
    while (at >= 0 && items[at] !== item) at--
    if (at < 0) return false
    for (this.#size--; at < this.#size; at++) items[at] = items[at + 1]
    items[at] = undefined
    return true
  }

  /** The latest that fits. */
  findLast(fits: (item: T) => boolean): T | undefined {
    for (let at = this.#size - 1; at >= 0; at--) {
      const item = this.#items[at]
      if (item && fits(item)) return item
    }
    return undefined
  }

  /** Of those that were there when the iteration began. */
  [Symbol.iterator](): ArrayIterator<T> {
    return (this.#items.slice(0, this.#size) as T[])[Symbol.iterator]()
  }
}
