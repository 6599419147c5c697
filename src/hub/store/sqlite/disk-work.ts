import { closeSync, openSync, readSync } from 'node:fs'
import { after } from '../../../base/clock.ts'

/** The writes of the store since it was opened. */
export interface DiskWork {
  /**
   * Bytes written to the database, its WAL and SQLite's other files, with checkpoints. 0 where the
   * kernel does not count them.
   */
  readonly bytes: number
  /** Syncs. */
  readonly syncs: number
}

const fields = { bytes: 0, syncs: 1 } as const
type Field = keyof typeof fields

/** Counted by the writer thread and read by the main one. The shared memory outlives a writer. */
export type SharedDiskWork = BigInt64Array<SharedArrayBuffer>

export const sharedDiskWork = (): SharedDiskWork =>
  new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT))

const count = (shared: SharedDiskWork, field: Field): number =>
  Number(Atomics.load(shared, fields[field]))

export const diskWorkOf = (shared: SharedDiskWork): DiskWork => ({
  bytes: count(shared, 'bytes'),
  syncs: count(shared, 'syncs'),
})

/** The WAL header in bytes: written and synced when the WAL is restarted. */
const logHead = 32
/** The header of each frame in the WAL. */
const frameHead = 24

/** How long bytes may stay uncounted: a count is a system call more than a small commit needs. */
const uncountedMs = 1_000

/**
 * Counts in the writer thread. The bytes are those that Linux counts for this thread (`wchar`):
 * SQLite writes by system calls only, and nothing else runs in the thread. Syncs follow from when
 * SQLite issues them in WAL mode (https://sqlite.org/wal.html): after a durable commit, after the
 * header of a WAL, before and after pages are copied to the database. `sync` counts its own.
 */
export class DiskMeter {
  readonly #shared: SharedDiskWork
  readonly #frame: number
  readonly #file: number | undefined
  readonly #text = Buffer.alloc(512)
  #counted: number
  #due: Disposable | undefined

  constructor(shared: SharedDiskWork, pageSize: number) {
    this.#shared = shared
    this.#frame = frameHead + pageSize
    this.#file = openedForThisThread()
    this.#counted = this.#written()
  }

  /** Counts the work of opening the database; its syncs are not known. */
  opening<T>(act: () => T): T {
    return this.#measured(act, () => 0)
  }

  /**
   * Counts a transaction, also one that fails: its writes are on the disk. One that is not durable
   * is counted with others, later.
   */
  transaction<T>(durable: boolean, act: () => T): T {
    if (durable) return this.#measured(act, (bytes) => 1 + this.#headers(bytes))
    this.#due ??= after(uncountedMs, () => this.#count())
    return act()
  }

  checkpoint(act: () => void): void {
    this.#measured(act, () => 2)
  }

  /** Counts a sync, also one that fails. */
  sync(act: () => void): void {
    this.#add('syncs', 1)
    act()
  }

  close(): void {
    this.#count()
    if (this.#file !== undefined) closeSync(this.#file)
  }

  #measured<T>(act: () => T, syncsOf: (bytes: number) => number): T {
    this.#count()
    const before = this.#counted
    try {
      return act()
    } finally {
      const bytes = this.#advance() - before
      // SQLite does not sync where nothing was written.
      if (bytes > 0) this.#add('syncs', syncsOf(bytes))
    }
  }

  /** Counts transactions that were not durable. */
  #count(): void {
    if (!this.#due) return
    this.#due[Symbol.dispose]()
    this.#due = undefined
    const before = this.#counted
    this.#add('syncs', this.#headers(this.#advance() - before))
  }

  /** How many of these bytes, whole frames otherwise, begin a WAL. */
  #headers(bytes: number): number {
    const rest = bytes % this.#frame
    return rest % logHead === 0 ? rest / logHead : 0
  }

  #advance(): number {
    const written = this.#written()
    this.#add('bytes', written - this.#counted)
    this.#counted = written
    return written
  }

  #add(field: Field, amount: number): void {
    if (amount > 0) Atomics.add(this.#shared, fields[field], BigInt(amount))
  }

  #written(): number {
    if (this.#file === undefined) return 0
    const length = readSync(this.#file, this.#text, 0, this.#text.byteLength, 0)
    return Number(/^wchar: (\d+)$/m.exec(this.#text.toString('latin1', 0, length))?.[1] ?? 0)
  }
}

/** `undefined`: not Linux, or a kernel without these counters. */
function openedForThisThread(): number | undefined {
  try {
    return openSync('/proc/thread-self/io', 'r')
  } catch {
    return undefined
  }
}
