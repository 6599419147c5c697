import { closeSync, constants, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { open, rename, rm, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeFolder } from './folder.ts'

/**
 * A file that was not there, and no other: a link of its name is neither followed nor written
 * through.
 */
const anew = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/**
 * Writes a file whole or not at all, open to nobody else from its first byte, and on the disk when
 * this resolves. Where a link has its name, the file takes the link's place. Folders that are
 * missing are made, closed to others too. No two may write one file at a time: `KeptFile` sees to
 * it.
 */
export async function writeDurably(file: string, content: string | Uint8Array): Promise<void> {
  const folder = dirname(file)
  const beside = besideOf(file)
  {
    await using handle = await begun(beside)
    await handle.writeFile(content)
    await handle.sync()
  }
  await rename(beside, file)
  // A new name is on the disk when the folder is.
  await using handle = await open(folder, 'r')
  await handle.sync()
}

/**
 * The same, on the disk when this returns: for what the process cannot begin without, as nobody is
 * answered meanwhile.
 */
export function writeDurablySync(file: string, content: string | Uint8Array): void {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  const folder = dirname(file)
  makeFolder(folder, 0o700)
  const beside = besideOf(file)
  rmSync(beside, { force: true })
  synced(beside, anew, (handle) => {
    for (let done = 0; done < bytes.byteLength;) done += writeSync(handle, bytes, done)
  })
  renameSync(beside, file)
  synced(folder, constants.O_RDONLY, () => undefined)
}

/**
 * What a write that was broken off left there is removed. Its folder is there, unless somebody has
 * removed it.
 */
async function begun(path: string): Promise<FileHandle> {
  await rm(path, { force: true })
  try {
    return await open(path, anew, 0o600)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause
    makeFolder(dirname(path), 0o700)
    return open(path, anew, 0o600)
  }
}

const besideOf = (file: string): string => `${file}.new`

function synced(path: string, flags: number, act: (handle: number) => void): void {
  const handle = openSync(path, flags, 0o600)
  try {
    act(handle)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
