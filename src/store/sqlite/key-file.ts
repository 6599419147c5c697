import { randomBytes } from 'node:crypto'
import {
  closeSync,
  chmodSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'

const keyLength = 32

/** The key in `path`; made there, closed to others from the first byte and on the disk before anything is sealed with it, if missing. */
export function loadKey(path: string): Uint8Array {
  try {
    const key = readFileSync(path)
    if (key.byteLength === keyLength) {
      chmodSync(path, 0o600)
      return key
    }
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')) throw cause
  }
  return makeKey(path)
}

function makeKey(path: string): Uint8Array {
  const key = randomBytes(keyLength)
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const beside = `${path}.new`
  withFile(beside, 'w', (file) => writeSync(file, key))
  renameSync(beside, path)
  withFile(folder, 'r', () => undefined)
  return key
}

function withFile(path: string, flags: string, act: (file: number) => void): void {
  const file = openSync(path, flags, 0o600)
  try {
    act(file)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
