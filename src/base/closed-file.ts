import { chmodSync, statSync } from 'node:fs'

/**
 * Sees to it that the file or folder is open as `mode` says and no further. What is so already is left alone, so that a disk that takes no
 * writes is none the worse; one that is read-only as a whole keeps what it has.
 */
export function closeToOthers(path: string, mode: number): void {
  if ((statSync(path).mode & 0o777) === mode) return
  try {
    chmodSync(path, mode)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EROFS') throw error
  }
}
