import { StoreFailure } from '../store.ts'
import type { Reading } from './snapshots.ts'

/** Bytes read at once: they block the event loop. */
export const batchBytes = 256 << 10

/** Rows of a batch: many small ones are work, too. */
const batchRows = 512

/**
 * Reads the objects or events of rows as they were at construction, a batch at a time. Bodies are
 * never rewritten, and kept until this is done or returned. Iterated once.
 */
export class BatchReader<Row extends { readonly size: number }, Read> implements IterableIterator<
  readonly Read[]
> {
  readonly #rows: readonly Row[]
  readonly #reading: Reading
  readonly #read: (batch: readonly Row[]) => readonly Read[]
  #ahead: readonly Read[] | undefined
  #at = 0
  #begun = false

  constructor(
    rows: readonly Row[],
    reading: Reading,
    read: (batch: readonly Row[]) => readonly Read[],
  ) {
    this.#rows = rows
    this.#reading = reading
    this.#read = read
    if (rows.length === 0) reading[Symbol.dispose]()
  }

  [Symbol.iterator](): this {
    if (this.#begun) throw new Error('a batch reader is iterated once')
    this.#begun = true
    return this
  }

  /** Reads the first batch now, so that the caller learns here if it cannot be read. */
  readAhead(): this {
    const { value } = this.next()
    this.#ahead = value
    return this
  }

  next(): IteratorResult<readonly Read[], undefined> {
    const ahead = this.#ahead
    this.#ahead = undefined
    if (ahead) return { done: false, value: ahead }
    if (this.#at >= this.#rows.length) return { done: true, value: undefined }
    if (!this.#reading.valid)
      throw new StoreFailure('the read took too long: its objects are not kept any longer')
    const batch = this.#batch()
    const value = this.#read(batch)
    this.#at += batch.length
    if (this.#at >= this.#rows.length) this.#reading[Symbol.dispose]()
    return { done: false, value }
  }

  return(): IteratorResult<readonly Read[], undefined> {
    this.#ahead = undefined
    this.#at = this.#rows.length
    this.#reading[Symbol.dispose]()
    return { done: true, value: undefined }
  }

  #batch(): readonly Row[] {
    let bytes = 0
    let end = this.#at
    for (let row = this.#rows[end]; row; row = this.#rows[end]) {
      bytes += row.size
      if (end > this.#at && (bytes > batchBytes || end - this.#at >= batchRows)) break
      end += 1
    }
    return this.#rows.slice(this.#at, end)
  }
}
