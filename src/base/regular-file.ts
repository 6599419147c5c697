import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs'

/** Linux's O_PATH, which Node does not export. */
const pathOnly = 0o10000000

export interface RegularFile extends Disposable {
  readonly handle: number
  readonly stat: Stats
}

/**
 * Opens a file for reading; `undefined` if there is none. Its type is checked before: opening a
 * device has effects, and the other end of a pipe notices. Throws for a link or anything but a
 * regular file: the hub creates none, and a link's target may belong to another user. `shown` is
 * its name in messages.
 */
export function regularFile(path: string, shown = path): RegularFile | undefined {
  const seen = opened(path, pathOnly | constants.O_NOFOLLOW)
  if (seen === undefined) return undefined
  try {
    const stat = fstatSync(seen)
    if (stat.isSymbolicLink()) {
      throw new Error(
        `${shown} is a link, which the hub does not follow: put there what it leads to`,
      )
    }
    if (!stat.isFile()) throw new Error(`${shown} is no file`)
    // Opens the checked file, even if the name was replaced meanwhile.
    const handle = openSync(`/proc/self/fd/${seen}`, constants.O_RDONLY)
    return { handle, stat, [Symbol.dispose]: () => closeSync(handle) }
  } finally {
    closeSync(seen)
  }
}

function opened(path: string, flags: number): number | undefined {
  try {
    return openSync(path, flags)
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw cause
  }
}
