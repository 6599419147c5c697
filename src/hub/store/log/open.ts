import { realpathSync, statSync } from 'node:fs'
import { makeFolder } from '../../../base/folder.ts'
import { restrictMode } from '../../../base/file-mode.ts'
import { StoreFailure } from '../store.ts'
import { failureOf, isOfDisk } from './faults.ts'
import { LogFolder, segmentsIn } from './folder.ts'
import { DirectoryInUse, lockDirectory } from './lock.ts'
import { LogStore } from './log-store.ts'
import { partsOf, type StoreOptions } from './parts.ts'
import { LaterFormat } from './recovery.ts'

/** The size of the log on the disk. */
export const bytesOnDisk = (directory: string): number => {
  try {
    const log = new LogFolder(directory)
    return segmentsIn(directory)
      .map((id) => statSync(log.segment(id).path).size)
      .reduce((sum, size) => sum + size, 0)
  } catch {
    return 0
  }
}

/**
 * Opens the store, also after a crash. Sets files that are no log aside, which is reported, and
 * begins a new one. On a disk that refuses writes the store opens, too, refuses writes, and takes
 * them as soon as the disk allows it. Rejects with a `StoreFailure` where the log cannot be read,
 * and where another store, of this process or another, uses the directory.
 */
export async function openStore(options: StoreOptions): Promise<LogStore> {
  const { directory } = options
  let held: Disposable | undefined
  /** Locks the directory before anything is written: another process may use it. */
  const hold = async (): Promise<void> => {
    if (held) return
    makeFolder(directory, 0o700)
    // The directory may be a symbolic link, to a larger disk.
    restrictMode(realpathSync(directory), 0o700)
    held = await lockDirectory(directory)
  }
  let refusal: unknown
  try {
    await hold()
  } catch (cause) {
    if (cause instanceof DirectoryInUse || !isOfDisk(cause)) throw failedToOpen(cause)
    refusal = cause
  }
  try {
    const release = (): void => held?.[Symbol.dispose]()
    const store = new LogStore(partsOf(options, { hold, refusal, release }))
    await store.begin()
    return store
  } catch (cause) {
    held?.[Symbol.dispose]()
    throw failedToOpen(cause)
  }
}

const failedToOpen = (cause: unknown): StoreFailure =>
  cause instanceof LaterFormat
    ? new StoreFailure(
        `the cache was written by a later release: ${cause.message}. It is left as it is. Start the release that wrote it; or move the files away, and this one begins with an empty cache`,
        { cause },
      )
    : failureOf('the store cannot be opened', cause)
