import { dirname } from 'node:path'
import { LockTaken, takeLock } from '../../../base/file-lock.ts'

/** Another store uses the directory. */
export class DirectoryInUse extends LockTaken {}

/** Locks the store's directory by this file in it. Throws `DirectoryInUse`. */
export function lock(path: string): Disposable {
  try {
    return takeLock(path)
  } catch (cause) {
    if (!(cause instanceof LockTaken)) throw cause
    const holder = cause.pid === undefined ? 'another hub' : `another hub, process ${cause.pid},`
    throw new DirectoryInUse(
      `${holder} uses ${dirname(path)}: stop it, or give this one a --root-dir of its own`,
      cause.pid,
      cause,
    )
  }
}
