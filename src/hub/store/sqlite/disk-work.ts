import { closeSync, openSync, readSync } from 'node:fs'

/** What the store has done to the disk since it was opened. */
export interface DiskWork {
  /**
   * Written to the database, its log and what else SQLite keeps beside them; checkpoints included.
   * 0 where Linux does not tell.
   */
  readonly bytes: number
  /** Times that it waited until the disk had what was written. */
  readonly syncs: number
}

const fields = { bytes: 0, syncs: 1 } as const
type Field = keyof typeof fields

/**
 * Counted by the thread that writes, read by the other: they share this memory, which outlives a
 * writer.
 */
export type SharedDiskWork = BigInt64Array<SharedArrayBuffer>

export const sharedDiskWork = (): SharedDiskWork =>
  new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT))

const told = (shared: SharedDiskWork, field: Field): number =>
  Number(Atomics.load(shared, fields[field]))

export const diskWorkOf = (shared: SharedDiskWork): DiskWork => ({
  bytes: told(shared, 'bytes'),
  syncs: told(shared, 'syncs'),
})

/** A log that is begun anew gets its head of so many bytes first, and is synced after it. */
const logHead = 32
/** What stands before each page in the log. */
const frameHead = 24

/**
 * Counts in the thread that writes. The bytes are those that Linux counts for this thread
 * (`wchar`): SQLite writes by system calls only, and nothing else runs here meanwhile. Syncs are
 * worked out from when SQLite asks for them in WAL mode (https://sqlite.org/wal.html): after a
 * commit that is to outlive a power cut, after the head of a log, before and after pages are copied
 * from the log to the database. What `sync` does is beside that.
 */
export class DiskMeter {
  readonly #shared: SharedDiskWork
  readonly #frame: number
  readonly #file: number | undefined
  readonly #text = Buffer.alloc(512)

  constructor(shared: SharedDiskWork, pageSize: number) {
    this.#shared = shared
    this.#frame = frameHead + pageSize
    this.#file = openedForThisThread()
  }

  /** What is put right when a file is opened; how often it is synced then nobody knows. */
  opening<T>(act: () => T): T {
    return this.#measured(act, () => 0)
  }

  /** Counts what a transaction does, also where it fails: what it wrote is on the disk then. */
  transaction<T>(durable: boolean, act: () => T): T {
    const begun = (bytes: number): number => (bytes % this.#frame === logHead ? 1 : 0)
    return this.#measured(act, (bytes) => (durable ? 1 : 0) + begun(bytes))
  }

  checkpoint(act: () => void): void {
    this.#measured(act, () => 2)
  }

  /** Counts a sync of what was written before; also where it fails. */
  sync(act: () => void): void {
    this.#add('syncs', 1)
    act()
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
  }

  #measured<T>(act: () => T, syncsOf: (bytes: number) => number): T {
    const before = this.#written()
    try {
      return act()
    } finally {
      const bytes = this.#written() - before
      this.#add('bytes', bytes)
      // What writes nothing is not synced either.
      if (bytes > 0) this.#add('syncs', syncsOf(bytes))
    }
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

/** `undefined`: not Linux, or a kernel that does not count. */
function openedForThisThread(): number | undefined {
  try {
    return openSync('/proc/thread-self/io', 'r')
  } catch {
    return undefined
  }
}
