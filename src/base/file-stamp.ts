import { statSync } from 'node:fs'

/**
 * A text that changes when any of the files changes, appears or disappears. It includes the inode:
 * certificates are rotated by replacing a link, and a mounted ConfigMap by exchanging the folder
 * that its files link into.
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
