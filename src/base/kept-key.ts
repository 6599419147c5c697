import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { closeToOthers } from './closed-file.ts'
import { writeDurablySync } from './durable-file.ts'

const keyBytes = 32

/**
 * A random key that stays the same: read from `file`, or made there, closed to others from the first byte and on the disk before it is
 * used, in a folder that is settled. A file of another length is replaced: what was keyed with it is lost, which is better than a weak key.
 */
export function keptKey(file: string): Buffer {
  try {
    const kept = readFileSync(file)
    if (kept.byteLength === keyBytes) {
      closeToOthers(file, 0o600)
      return kept
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const key = randomBytes(keyBytes)
  writeDurablySync(file, key)
  return key
}
