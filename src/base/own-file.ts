import { fchmodSync, fchownSync, readFileSync } from 'node:fs'
import { ignoringReadOnly } from './file-mode.ts'
import { regularFile } from './regular-file.ts'

/**
 * The content of a file of the hub; `undefined` if there is none. `secret`: changes its owner to
 * this process's user, and its mode to 0600. Throws if it cannot be read, or is a link or anything
 * but a regular file.
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
