import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'

const keyBytes = 32

/**
 * A random key that stays the same: read from `file`, or made and written there, readable by its owner only from the first byte. A file of
 * another length is replaced: what was keyed with it is lost, which is better than a weak key.
 */
export function keptKey(file: string): Buffer {
  try {
    const kept = readFileSync(file)
    if (kept.byteLength === keyBytes) return kept
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const key = randomBytes(keyBytes)
  const beside = `${file}.new`
  const handle = openSync(beside, 'w', 0o600)
  try {
    writeSync(handle, key)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  renameSync(beside, file)
  return key
}
