import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs'

/** Linux's O_PATH, which Node does not name. */
const pathOnly = 0o10000000

export interface RegularFile extends Disposable {
  readonly handle: number
  readonly stat: Stats
}

/**
 * Opens a file for reading; `undefined` where there is none. It is looked at before it is opened:
 * to open a device acts on it, and the other end of a pipe hears of it. Throws where a link or
 * anything else but a file has its name, which the hub never makes: what it leads to may be
 * another's. `shown` is its name for an operator.
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
    // What was looked at, whatever has its name by now.
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
