import { chmodSync, lstatSync } from 'node:fs'

/**
 * Restricts a file or folder to `mode`. Throws for a link: the hub creates none, and its target may
 * belong to another user. Leaves a correct mode alone, as the disk may take no writes; a file on a
 * read-only file system keeps its mode. Works by path: closing a descriptor of a database would
 * release this process's locks on it.
 */
export function restrictMode(path: string, mode: number): void {
  const stat = lstatSync(path)
  if (stat.isSymbolicLink())
    throw new Error(`${path} is a link, which the hub does not follow: put there what it leads to`)
  if ((stat.mode & 0o777) !== mode) ignoringReadOnly(() => chmodSync(path, mode))
}

/** Calls `act`, and ignores that the file system is read-only. */
export function ignoringReadOnly(act: () => void): void {
  try {
    act()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EROFS') throw error
  }
}
