import type { ApiObject } from '../../kube/object.ts'
import { StoreFailure } from '../store.ts'
import type { Stored } from './reads.ts'
import type { Reading } from './snapshots.ts'

/** Bytes read at once: what the loop may be held up for. */
const runBytes = 256 << 10

/** Objects of one run: many small ones are work too. */
const runObjects = 512

/**
 * The members of a collection as they were when it was asked for. Bodies are read a run at a time when they are wanted; they are never
 * rewritten, and kept until this is done or given up. Iterated once.
 */
export class ListSnapshot implements IterableIterator<readonly ApiObject[]> {
  readonly #members: readonly Stored[]
  readonly #reading: Reading
  readonly #bodies: (run: readonly Stored[]) => readonly ApiObject[]
  #at = 0
  #begun = false

  constructor(
    members: readonly Stored[],
    reading: Reading,
    bodies: (run: readonly Stored[]) => readonly ApiObject[],
  ) {
    this.#members = members
    this.#reading = reading
    this.#bodies = bodies
    if (members.length === 0) reading[Symbol.dispose]()
  }

  [Symbol.iterator](): this {
    if (this.#begun) throw new Error('a stored list is iterated once')
    this.#begun = true
    return this
  }

  next(): IteratorResult<readonly ApiObject[], undefined> {
    if (this.#at >= this.#members.length) return { done: true, value: undefined }
    if (!this.#reading.valid) throw new StoreFailure('the list was read too slowly to be kept')
    const run = this.#run()
    const value = this.#bodies(run)
    this.#at += run.length
    if (this.#at >= this.#members.length) this.#reading[Symbol.dispose]()
    return { done: false, value }
  }

  return(): IteratorResult<readonly ApiObject[], undefined> {
    this.#at = this.#members.length
    this.#reading[Symbol.dispose]()
    return { done: true, value: undefined }
  }

  #run(): readonly Stored[] {
    let bytes = 0
    let end = this.#at
    for (let member = this.#members[end]; member; member = this.#members[end]) {
      bytes += member.size
      if (end > this.#at && (bytes > runBytes || end - this.#at >= runObjects)) break
      end += 1
    }
    return this.#members.slice(this.#at, end)
  }
}
