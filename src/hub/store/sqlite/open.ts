import { statSync } from 'node:fs'
import { join } from 'node:path'
import { elapsed, sleep } from '../../../base/clock.ts'
import type { FindReferencedObjects } from '../named-object.ts'
import { StoreFailure } from '../store.ts'
import { sharedDiskWork } from './disk-work.ts'
import { unsyncedMs } from './late-sync.ts'
import { DirectoryInUse } from './lock.ts'
import type { WriterOptions } from './messages.ts'
import { emptyReads, openReadsAlone } from './open-reads.ts'
import { databaseFile, StoreDirectory, type OpenWriter } from './store-directory.ts'
import { quotaBytes } from './quotas.ts'
import type { Reads } from './reads.ts'
import type { OnEvicted } from './evictor.ts'
import { Seal } from './seal.ts'
import { Snapshots } from './snapshots.ts'
import { SqliteStore } from './sqlite-store.ts'
import { isOfDisk, type ReportFault } from './faults.ts'

export interface StoreOptions {
  /** Made if missing, and closed to others. */
  readonly directory: string
  /** The key that secrets are sealed with: 32 bytes. */
  readonly sealingKey: Uint8Array
  /**
   * Bytes the database may grow to: what is least needed goes before; what no room can be made for
   * is refused.
   */
  readonly maxBytes?: number
  /**
   * How long a change that waits for no disk may be lost in a power cut, in milliseconds; absent:
   * some seconds.
   */
  readonly syncWithinMs?: number
  /** How long to wait for another process that has the directory open; absent: not at all. */
  readonly patienceMs?: number
  /** Told of everything that went wrong, for logs and metrics. */
  readonly report: ReportFault
  /** Told when the store takes writes again, after it did not. */
  readonly onRecovered?: () => void
  /** Told when something went to make room. */
  readonly onEvicted?: OnEvicted
  /** Asked where there is no room otherwise; absent: nothing that pods may refer to ever goes. */
  readonly referencedObjects?: FindReferencedObjects
  /**
   * Told of each commit of what was written, with its bytes of objects and documents; not of one
   * that only keeps house.
   */
  readonly onCommitted?: (bytes: number) => void
}

/**
 * What the database takes on the disk, with what is written ahead of it and not yet in its place.
 */
export const bytesOnDisk = (directory: string): number =>
  ['', '-wal'].reduce((sum, suffix) => {
    const found = statSync(join(directory, databaseFile + suffix), { throwIfNoEntry: false })
    return sum + (found?.size ?? 0)
  }, 0)

/**
 * Opens the store, as it was left or as a crash left it. A database that cannot be used is set
 * aside under another name, which is reported, and a new one begun. On a disk that takes no writes
 * it is opened all the same: what is there is read, writes are refused, and a writer is started as
 * soon as the disk lets it. Rejects with a `StoreFailure` where there is nothing to read and never
 * will be, and where another store, of this process or another, has the directory open.
 */
export async function openStore(options: StoreOptions): Promise<SqliteStore> {
  const { directory, sealingKey, maxBytes, patienceMs = 0, report } = options
  const path = join(directory, databaseFile)
  const writing: WriterOptions = {
    path,
    sealingKey,
    maxBytes,
    diskWork: sharedDiskWork(),
    syncWithinMs: options.syncWithinMs ?? unsyncedMs,
  }
  const snapshots = new Snapshots()
  const onStarting = (): void => snapshots.restart()
  const storeDirectory = new StoreDirectory(directory, writing, { report, onStarting })
  const crashed = logLeft(path)
  const first = await startedWriter(storeDirectory, patienceMs)
  const seal = new Seal(sealingKey)
  const readAlone = (): Reads | undefined => openReadsAlone(path, seal)
  const reads = first instanceof StoreFailure ? readAlone() : first.reads
  if (first instanceof StoreFailure && (isTaken(first) || (!reads && !isOfDisk(first)))) {
    storeDirectory[Symbol.dispose]()
    throw first
  }
  return new SqliteStore({
    storeDirectory,
    first,
    path,
    diskWork: writing.diskWork,
    stagedBytes: quotaBytes(maxBytes ?? Infinity),
    crashed,
    reads: reads ?? emptyReads(seal),
    readAlone: first instanceof StoreFailure ? readAlone : undefined,
    snapshots,
    report,
    onCommitted: options.onCommitted ?? nothing,
    onRecovered: options.onRecovered ?? nothing,
    onEvicted: options.onEvicted ?? nothing,
    referencedObjects: options.referencedObjects ?? nothing,
  })
}

/** Whether an earlier run has left its log, which it does not where it ends by itself. */
const logLeft = (path: string): boolean =>
  (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0

const nothing = () => undefined

const isTaken = ({ cause }: StoreFailure): boolean => cause instanceof DirectoryInUse

/** How often a directory that another process is about to let go of is tried. */
const retryMs = 20

async function startedWriter(
  storeDirectory: StoreDirectory,
  patienceMs: number,
): Promise<OpenWriter | StoreFailure> {
  const until = elapsed() + patienceMs
  for (;;) {
    try {
      return await storeDirectory.openWriter()
    } catch (failure) {
      if (!(failure instanceof StoreFailure)) throw failure
      if (!isTaken(failure) || elapsed() >= until) return failure
      await sleep(retryMs)
    }
  }
}
