import { closeSync, constants, fchmodSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { unlessReadOnly } from './closed-file.ts'

/**
 * What a file of the hub's own holds; `undefined` where there is none. `secret`: it is closed to
 * others if it is not. Throws where it cannot be read, and where a link or anything else but a file
 * has its name: the hub never makes one, and what it leads to may be another's.
 */
export function ownFile(path: string, secret?: 'secret'): Buffer | undefined {
  const handle = opened(path)
  if (handle === undefined) return undefined
  try {
    const stat = fstatSync(handle)
    if (!stat.isFile()) throw new Error(`${path} is no file`)
    if (secret && (stat.mode & 0o777) !== 0o600) unlessReadOnly(() => fchmodSync(handle, 0o600))
    return readFileSync(handle)
  } finally {
    closeSync(handle)
  }
}

function opened(path: string): number | undefined {
  try {
    // Not to wait for the other end of a pipe.
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    if (code !== 'ELOOP') throw cause
    const said = `${path} is a link, which the hub does not follow: put there what it leads to`
    throw new Error(said, { cause })
  }
}
