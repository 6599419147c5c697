import { closeSync, constants, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { open, rename, rm, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeFolder } from './folder.ts'

/** Creates the file: fails if it exists, and follows no link. */
const anew = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/**
 * Replaces a file atomically, readable by its owner only from the first byte; it is on the disk
 * when this resolves. A link with its name is replaced, not followed. Missing folders are created,
 * closed to others too. Callers must not write the same file concurrently: `StateFile` prevents
 * that. Content that does not fit into memory is written by a function.
 */
export async function writeDurably(
  file: string,
  content: string | Uint8Array | ((handle: FileHandle) => Promise<void>),
): Promise<void> {
  const folder = dirname(file)
  const beside = besideOf(file)
  {
    await using handle = await begun(beside)
    if (typeof content === 'function') await content(handle)
    else await handle.writeFile(content)
    await handle.sync()
  }
  await rename(beside, file)
  // The new name is durable when the folder is synced.
  await using handle = await open(folder, 'r')
  await handle.sync()
}

/**
 * The same, synchronously: for files without which the process cannot start, when it serves no
 * request yet.
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

/** Removes the remains of an interrupted write. Creates the folder if it was removed. */
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
