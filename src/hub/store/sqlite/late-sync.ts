import { closeSync, fdatasyncSync, openSync } from 'node:fs'
import { after } from '../../../base/clock.ts'

/** How long what was committed without waiting for the disk may be without it. */
export const unsyncedMs = 5000

/**
 * Sees to it that what was committed without a sync has one soon: one for all of a while, and none
 * where a later commit was synced in the meantime, which takes with it all that stands before it in
 * the log.
 *
 * The log is synced through a descriptor of its own. The kernel syncs files, not what was written
 * through a descriptor; and where closing one would take SQLite's locks away
 * (https://sqlite.org/howtocorrupt.html, 2.2), these are on the database and its shared memory,
 * never on the log. No page is written for it, and no reader has to look again. The name of the log
 * has the disk already: SQLite syncs the head of a new one, and its folder with that, before
 * anything that follows it.
 */
export class LateSync implements Disposable {
  readonly #log: string
  readonly #withinMs: number
  readonly #sync: (log: () => void) => void
  #file: number | undefined
  #timer: Disposable | undefined

  /**
   * `sync` is called when it is time, with what makes the log be synced, which throws what the disk
   * says; it does not throw itself.
   */
  constructor(log: string, withinMs: number, sync: (log: () => void) => void) {
    this.#log = log
    this.#withinMs = withinMs
    this.#sync = sync
  }

  /** Something was committed that the disk may not have. */
  committed(): void {
    this.#timer ??= after(this.#withinMs, () => {
      this.#timer = undefined
      this.#sync(() => fdatasyncSync((this.#file ??= openSync(this.#log, 'r'))))
    })
  }

  /** The disk has all that was committed. */
  synced(): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
  }

  [Symbol.dispose](): void {
    this.synced()
    if (this.#file !== undefined) closeSync(this.#file)
  }
}
