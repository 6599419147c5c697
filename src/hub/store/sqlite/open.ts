import { statSync } from 'node:fs'
import { join } from 'node:path'
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
  /** Created if missing, with access for its owner only. */
  readonly directory: string
  /** The key that secrets are sealed with: 32 bytes. */
  readonly sealingKey: Uint8Array
  /**
   * The maximal size of the database in bytes. The store evicts the least needed records before; it
   * refuses a write that still does not fit.
   */
  readonly maxBytes?: number
  /** How long a commit may stay unsynced, in milliseconds; absent: some seconds. */
  readonly syncWithinMs?: number
  /** Called for each fault, for logs and metrics. */
  readonly report: ReportFault
  /** Called when the store takes writes again after it did not. */
  readonly onRecovered?: () => void
  /** Called after an eviction. */
  readonly onEvicted?: OnEvicted
  /**
   * Called before unreferenced objects are evicted; absent: objects that pods may refer to are
   * never evicted.
   */
  readonly referencedObjects?: FindReferencedObjects
  /**
   * Called after each commit of callers' writes, with their bytes of objects and documents; not
   * after the store's own.
   */
  readonly onCommitted?: (bytes: number) => void
}

/** The size of the database and its WAL on the disk. */
export const bytesOnDisk = (directory: string): number =>
  ['', '-wal'].reduce((sum, suffix) => {
    const found = statSync(join(directory, databaseFile + suffix), { throwIfNoEntry: false })
    return sum + (found?.size ?? 0)
  }, 0)

/**
 * Opens the store, also after a crash. Sets a database that cannot be used aside under another
 * name, which is reported, and begins a new one. On a disk that refuses writes the store opens,
 * too: it reads the existing database, refuses writes, and starts a writer as soon as the disk
 * allows it. Rejects with a `StoreFailure` where there is nothing to read and the fault is
 * permanent, and where another store, of this process or another, uses the directory.
 */
export async function openStore(options: StoreOptions): Promise<SqliteStore> {
  const { directory, sealingKey, maxBytes, report } = options
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
  const first = await startedWriter(storeDirectory)
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

/** Whether the last process has left its WAL, which it does not at a regular end. */
const logLeft = (path: string): boolean =>
  (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0

const nothing = () => undefined

const isTaken = ({ cause }: StoreFailure): boolean => cause instanceof DirectoryInUse

async function startedWriter(storeDirectory: StoreDirectory): Promise<OpenWriter | StoreFailure> {
  try {
    return await storeDirectory.openWriter()
  } catch (failure) {
    if (failure instanceof StoreFailure) return failure
    throw failure
  }
}
