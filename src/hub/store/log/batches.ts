/** Bytes read at once: they block the event loop. */
export const batchBytes = 256 << 10
/** Entries of a batch: many small ones are work, too. */
const batchEntries = 512

/** Reads the objects or events of entries, a batch at a time. Iterated once. */
export class Batches<Entry, Read> implements IterableIterator<readonly Read[]> {
  readonly #entries: readonly Entry[]
  readonly #sizeOf: (entry: Entry) => number
  readonly #read: (batch: readonly Entry[]) => readonly Read[]
  #at = 0
  #begun = false

  constructor(
    entries: readonly Entry[],
    sizeOf: (entry: Entry) => number,
    read: (batch: readonly Entry[]) => readonly Read[],
  ) {
    this.#entries = entries
    this.#sizeOf = sizeOf
    this.#read = read
  }

  [Symbol.iterator](): this {
    if (this.#begun) throw new Error('a list is read once')
    this.#begun = true
    return this
  }

  next(): IteratorResult<readonly Read[], undefined> {
    const batch = this.#batch()
    if (batch.length === 0) return { done: true, value: undefined }
    const value = this.#read(batch)
    this.#at += batch.length
    return { done: false, value }
  }

  return(): IteratorResult<readonly Read[], undefined> {
    this.#at = this.#entries.length
    return { done: true, value: undefined }
  }

  #batch(): readonly Entry[] {
    let bytes = 0
    let end = this.#at
    for (let entry = this.#entries[end]; entry; entry = this.#entries[end]) {
      bytes += this.#sizeOf(entry)
      if (end > this.#at && (bytes > batchBytes || end - this.#at >= batchEntries)) break
      end += 1
    }
    return this.#entries.slice(this.#at, end)
  }
}
