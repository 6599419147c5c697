import { realpathSync, statSync } from 'node:fs'
import { makeFolder } from '../../../base/folder.ts'
import { restrictMode } from '../../../base/file-mode.ts'
import { StoreFailure } from '../store.ts'
import { failureOf, isOfDisk } from './faults.ts'
import { LogFolder, segmentsIn } from './log-writer.ts'
import { DirectoryInUse, lockDirectory, lockFile } from './lock.ts'
import { LogStore } from './log-store.ts'
import { partsOf, type StoreOptions } from './parts.ts'
import { LaterFormat } from './recovery.ts'
import { join } from 'node:path'
import { isLocked } from '../../../base/file-lock.ts'

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
 * Opens the store, also after a crash. Where no file can be used, which is reported, it begins
 * empty. On a disk that refuses writes the store opens, too, refuses writes, and takes them as soon
 * as the disk allows it. Rejects with a `StoreFailure` where the log cannot be read, and where
 * another store, of this process or another, uses the directory.
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

/** The store of a hub that is not running, for reading. */
export interface StoppedStore extends AsyncDisposable {
  readonly store: LogStore
  /**
   * Rejects with a `StoreFailure` if a hub has started meanwhile: the reads may be of two states.
   */
  checkStopped(): Promise<void>
}

/**
 * Opens the store of a hub that is not running, and changes nothing: it takes no lock, creates no
 * file, and refuses writes. Rejects with a `StoreFailure` where there is no store, where a hub uses
 * it, and where it cannot be read.
 */
export async function openStopped(
  directory: string,
  sealingKey: Uint8Array,
  isShared: StoreOptions['isShared'],
): Promise<StoppedStore> {
  const checkStopped = async (): Promise<void> => {
    if (!(await isLocked(join(directory, lockFile)))) return
    throw new StoreFailure(
      `a hub is running on ${directory}: inspect it at its --serve-port, without --root-dir and --disk-cache-path`,
    )
  }
  try {
    if (segmentsIn(directory).length === 0)
      throw new StoreFailure(`there is no store in ${directory}`)
    await checkStopped()
    const hold = (): Promise<never> =>
      Promise.reject(new StoreFailure('the store is open for reading only'))
    const nothing = (): void => undefined
    const opening = { hold, refusal: undefined, release: nothing }
    const options = { directory, sealingKey, isShared, report: nothing }
    const store = new LogStore(partsOf(options, opening))
    return { store, checkStopped, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'EACCES')
      throw new StoreFailure(`${directory} cannot be read: ${code}; run this command as root`, {
        cause,
      })
    throw failureOf(`${directory} cannot be read`, cause)
  }
}
