import { fchmodSync, fchownSync, readFileSync } from 'node:fs'
import { ignoringReadOnly } from './file-mode.ts'
import { regularFile } from './regular-file.ts'

/**
 * What a file of the hub's own holds; `undefined` where there is none. `secret`: it is this
 * process's user's and closed to others from then on, whatever it was. Throws where it cannot be
 * read, and where a link or anything else but a file has its name.
 */
export function readOwnFile(path: string, secret?: 'secret'): Buffer | undefined {
  using file = regularFile(path)
  if (file === undefined) return undefined
  const { handle, stat } = file
  const [uid, gid] = [process.geteuid?.() ?? stat.uid, process.getegid?.() ?? stat.gid]
  if (secret && stat.uid !== uid) ignoringReadOnly(() => fchownSync(handle, uid, gid))
  if (secret && (stat.mode & 0o777) !== 0o600) ignoringReadOnly(() => fchmodSync(handle, 0o600))
  return readFileSync(handle)
}
