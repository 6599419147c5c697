import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { isLocked } from '../../../base/file-lock.ts'
import { StoreFailure } from '../store.ts'
import { sharedDiskWork } from './disk-work.ts'
import { openReadsUntouched } from './open-reads.ts'
import { Seal } from './seal.ts'
import { Snapshots } from './snapshots.ts'
import { SqliteStore } from './sqlite-store.ts'
import { lockFile } from './lock.ts'
import { databaseFile } from './store-directory.ts'

/** The store of a hub that is not running, for reading. */
export interface StoppedStore extends AsyncDisposable {
  readonly store: SqliteStore
  /** Throws a `StoreFailure` if a hub has started meanwhile: the reads may be of two states. */
  checkStopped(): void
}

/**
 * Opens the store of a hub that is not running, and changes nothing: it takes no lock, creates no
 * file, and refuses writes. Commits that are only in the WAL are read from there. Throws a
 * `StoreFailure` where there is no store, where a hub uses it, and where it cannot be read.
 */
export function openStopped(directory: string, sealingKey: Uint8Array): StoppedStore {
  const path = join(directory, databaseFile)
  const checkStopped = (): void => {
    if (!isLocked(join(directory, lockFile))) return
    throw new StoreFailure(
      `a hub is running on ${directory}: inspect it at its --serve-port, without --root-dir and --disk-cache-path`,
    )
  }
  checkReadable(path)
  checkStopped()
  const reads = openReadsUntouched(path, new Seal(sealingKey))
  if (!reads) throw new StoreFailure(`${path} cannot be read: it is damaged, or of a later release`)
  const refusal = new StoreFailure('the store is open for reading only')
  const store = new SqliteStore({
    storeDirectory: {
      openWriter: () => Promise.reject(refusal),
      [Symbol.dispose]: () => undefined,
    },
    first: refusal,
    path,
    diskWork: sharedDiskWork(),
    stagedBytes: 0,
    crashed: false,
    reads,
    readAlone: undefined,
    snapshots: new Snapshots(),
    report: () => undefined,
    onCommitted: () => undefined,
    onRecovered: () => undefined,
    onEvicted: () => undefined,
    referencedObjects: () => undefined,
  })
  return { store, checkStopped, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
}

function checkReadable(path: string): void {
  try {
    accessSync(path, constants.R_OK)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new StoreFailure(
      code === 'ENOENT'
        ? `there is no store: ${path} does not exist`
        : `${path} cannot be read: ${code}; run this command as root`,
      { cause },
    )
  }
}
