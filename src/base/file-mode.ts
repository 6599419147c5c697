import { chmodSync, lstatSync } from 'node:fs'

/**
 * Sees to it that the file or folder is open as `mode` says and no further. Throws where it is a
 * link: the hub never makes one, and what it leads to may be another's. What is so already is left
 * alone, so that a disk that takes no writes is none the worse; one that is read-only as a whole
 * keeps what it has. By its path, as closing a database that was opened for this would let go of
 * this process's locks on it.
 */
export function restrictMode(path: string, mode: number): void {
  const stat = lstatSync(path)
  if (stat.isSymbolicLink())
    throw new Error(`${path} is a link, which the hub does not follow: put there what it leads to`)
  if ((stat.mode & 0o777) !== mode) ignoringReadOnly(() => chmodSync(path, mode))
}

/** Does what a file system that is read-only as a whole does not take. */
export function ignoringReadOnly(act: () => void): void {
  try {
    act()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EROFS') throw error
  }
}
