import { closeSync, fdatasyncSync, openSync } from 'node:fs'
import { after } from '../../../base/clock.ts'

/** How long a commit may stay unsynced. */
export const unsyncedMs = 5000

/**
 * Syncs commits that did not wait for a sync: once for all of a while, and not at all after a later
 * synced commit, which takes everything before it in the WAL along.
 *
 * The WAL is synced through a descriptor of its own: the kernel syncs files, not the writes through
 * one descriptor. Closing a descriptor releases SQLite's locks on the file
 * (https://sqlite.org/howtocorrupt.html, 2.2), but SQLite locks the database and its shared memory,
 * never the WAL. The sync writes no page, and makes no reader look again. The name of the WAL is
 * durable already: SQLite syncs the header of a new WAL, and its folder, before anything that
 * follows.
 */
export class LateSync implements Disposable {
  readonly #log: string
  readonly #withinMs: number
  readonly #sync: (log: () => void) => void
  #file: number | undefined
  #timer: Disposable | undefined

  /**
   * `sync` is called when a sync is due, with a function that syncs the WAL and throws the disk's
   * errors. `sync` does not throw.
   */
  constructor(log: string, withinMs: number, sync: (log: () => void) => void) {
    this.#log = log
    this.#withinMs = withinMs
    this.#sync = sync
  }

  /** An unsynced commit was made. */
  committed(): void {
    this.#timer ??= after(this.#withinMs, () => {
      this.#timer = undefined
      this.#sync(() => fdatasyncSync((this.#file ??= openSync(this.#log, 'r'))))
    })
  }

  /** All commits are synced. */
  synced(): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
  }

  [Symbol.dispose](): void {
    this.synced()
    if (this.#file !== undefined) closeSync(this.#file)
  }
}
