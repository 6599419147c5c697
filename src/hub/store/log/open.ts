import { realpathSync } from 'node:fs'
import { makeFolder } from '../../../base/folder.ts'
import { restrictMode } from '../../../base/file-mode.ts'
import { StoreFailure } from '../store.ts'
import { failureOf, isOfDisk, type ReportFault } from './faults.ts'
import { segmentsIn } from './segments.ts'
import { lockDirectory, lockFile } from './lock.ts'
import { LogStore } from './log-store.ts'
import { partsOf, type StoreOptions } from './parts.ts'
import { LaterFormat } from './recovery.ts'
import { join } from 'node:path'
import { LockTaken, isLocked } from '../../../base/file-lock.ts'

/**
 * Opens the store, also after a crash. Where no file can be used, which is reported, it begins
 * empty. On a disk that refuses writes the store opens, too, refuses writes, and takes them as soon
 * as the disk allows it. Rejects with a `StoreFailure` where the log cannot be read, and where
 * another store, of this process or another, uses the directory.
 */
export async function openStore(options: StoreOptions): Promise<LogStore> {
  const { directory } = options
  let locked: Disposable | undefined
  /** Locks the directory before anything is written: another process may use it. */
  const lock = async (): Promise<void> => {
    if (locked) return
    makeFolder(directory, 0o700)
    // The directory may be a symbolic link, to a larger disk.
    restrictMode(realpathSync(directory), 0o700)
    locked = await lockDirectory(directory)
  }
  let refusal: unknown
  try {
    await lock()
  } catch (cause) {
    if (cause instanceof LockTaken || !isOfDisk(cause)) throw failedToOpen(cause)
    refusal = cause
  }
  try {
    const release = (): void => locked?.[Symbol.dispose]()
    const parts = partsOf(options, { lock, refusal, release })
    // A disk that refuses the first segment is tried again.
    await parts.path.exclusively(() => parts.log.rotate()).catch(() => undefined)
    return new LogStore(parts)
  } catch (cause) {
    locked?.[Symbol.dispose]()
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

/**
 * Rejects with a `StoreFailure` while a hub uses the store. One that has started since it was
 * opened may have changed what is read.
 */
export async function checkStopped(directory: string): Promise<void> {
  if (!(await isLocked(join(directory, lockFile)))) return
  throw new StoreFailure(
    `a hub is running on ${directory}: inspect it at its --serve-port, without --root-dir and --disk-cache-path`,
  )
}

/**
 * Opens the store of a hub that is not running, and changes nothing: it takes no lock, creates no
 * file, and refuses writes. Rejects with a `StoreFailure` where there is no store, where a hub uses
 * it, and where it cannot be read.
 */
export async function openStopped(
  options: Pick<StoreOptions, 'directory' | 'sealingKey' | 'isShared'>,
): Promise<LogStore> {
  const { directory } = options
  try {
    if (segmentsIn(directory).length === 0)
      throw new StoreFailure(`there is no store in ${directory}`)
    await checkStopped(directory)
    const report: ReportFault = (kind, failure) => {
      if (kind === 'unusable') throw failure
    }
    const lock = (): Promise<never> =>
      Promise.reject(new StoreFailure('the store is open for reading only'))
    const opening = { lock, refusal: undefined, release: () => undefined }
    return new LogStore(partsOf({ ...options, report }, opening))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EACCES')
      throw failureOf(`${directory} cannot be read`, cause)
    const why = `${directory} cannot be read: EACCES; run this command as root`
    throw new StoreFailure(why, { cause })
  }
}
