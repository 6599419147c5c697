import { join } from 'node:path'
import { LockTaken, takeLock } from '../../../base/file-lock.ts'

/** Of the file in the store's directory that locks it. */
export const lockFile = 'lock.db'

/** Locks the store's directory as a hub does. Rejects with `LockTaken` while one runs. */
export async function lockDirectory(directory: string): Promise<Disposable> {
  try {
    return await takeLock(join(directory, lockFile))
  } catch (cause) {
    if (!(cause instanceof LockTaken)) throw cause
    const holder = cause.pid === undefined ? 'another hub' : `another hub, process ${cause.pid},`
    throw new LockTaken(
      `${holder} uses ${directory}: stop it, or give this one a --root-dir of its own`,
      cause.pid,
      cause,
    )
  }
}
