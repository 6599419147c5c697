import { statSync } from 'node:fs'

/**
 * Changes when any of the files does, or comes or goes. By inode too: certificates are rotated by
 * renaming a link, and a mounted ConfigMap by exchanging the folder that its files are links into.
 */
export const stampOf = (files: readonly string[]): string => files.map(stampOfOne).join('|')

function stampOfOne(file: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs } = statSync(file)
    return `${ino}:${size}:${mtimeMs}:${ctimeMs}`
  } catch (cause) {
    return String((cause as NodeJS.ErrnoException).code)
  }
}

/**
 * Tells from now on whether the file that stands at `path` is still the one that stands there now.
 */
export function sameFileCheck(path: string): () => boolean {
  const found = identityOf(path)
  return () => identityOf(path) === found
}

function identityOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat && `${stat.dev}:${stat.ino}`
}
