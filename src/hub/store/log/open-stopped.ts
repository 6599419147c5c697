import { join } from 'node:path'
import { isLocked } from '../../../base/file-lock.ts'
import { StoreFailure } from '../store.ts'
import { failureOf } from './faults.ts'
import { segmentsIn } from './folder.ts'
import { lockFile } from './lock.ts'
import { LogStore } from './log-store.ts'
import { partsOf, type StoreOptions } from './parts.ts'

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
    const opening = { hold, refusal: undefined, release: nothing, isReadOnly: true }
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
