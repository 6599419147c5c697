import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from './folder.ts'

const keyBytes = 32

/**
 * A random key that stays the same: read from `file`, or made there, closed to others from the first byte and on the disk before it is
 * used. A file of another length is replaced: what was keyed with it is lost, which is better than a weak key.
 */
export function keptKey(file: string): Buffer {
  try {
    const kept = readFileSync(file)
    if (kept.byteLength === keyBytes) {
      chmodSync(file, 0o600)
      return kept
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return makeKey(file)
}

function makeKey(file: string): Buffer {
  const key = randomBytes(keyBytes)
  const folder = dirname(file)
  makeFolder(folder, 0o700)
  const beside = `${file}.new`
  synced(beside, 'w', (handle) => writeSync(handle, key))
  renameSync(beside, file)
  // A new name is on the disk when the folder is.
  synced(folder, 'r', () => undefined)
  return key
}

function synced(path: string, flags: string, act: (handle: number) => void): void {
  const handle = openSync(path, flags, 0o600)
  try {
    act(handle)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
