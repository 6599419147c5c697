import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from './folder.ts'

/**
 * Writes a file whole or not at all, open to nobody else from its first byte, and on the disk when this returns. Folders that are missing are
 * made, closed to others too.
 */
export function writeDurably(file: string, content: string | Uint8Array): void {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  const folder = dirname(file)
  makeFolder(folder, 0o700)
  const beside = `${file}.new`
  synced(beside, 'w', (handle) => {
    for (let done = 0; done < bytes.byteLength;) done += writeSync(handle, bytes, done)
  })
  renameSync(beside, file)
  // A new name is on the disk when the folder is.
  synced(folder, 'r', () => undefined)
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
