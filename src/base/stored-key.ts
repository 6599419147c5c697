import { randomBytes } from 'node:crypto'
import { writeDurablySync } from './durable-file.ts'
import { readOwnFile } from './own-file.ts'
import { Secret } from './secret.ts'

const keyBytes = 32

/**
 * A random key that persists: read from `file`, or created there, closed to others and durable
 * before its first use. A file of another length is replaced: what was keyed with it is lost, which
 * is better than a weak key.
 */
export const storedKey = (file: string): Buffer => kept(file, randomBytes(keyBytes))

/** The same for a bearer token, in characters that a header may have. */
export function storedToken(file: string): Secret<string> {
  const token = Buffer.from(randomBytes(keyBytes).toString('base64url'))
  return new Secret(kept(file, token).toString('latin1'))
}

/** The content of the file if it has the length of `otherwise`, which is written there if not. */
function kept(file: string, otherwise: Buffer): Buffer {
  const found = readOwnFile(file, 'secret')
  if (found?.byteLength === otherwise.byteLength) return found
  writeDurablySync(file, otherwise)
  return otherwise
}
