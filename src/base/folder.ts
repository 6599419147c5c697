import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a folder and those above it that are missing, each with `mode`; they outlive a power cut,
 * as what is synced in them is to. Throws what the first one met with that cannot be made. Not left
 * to mkdir's own `recursive`, which goes round for ever where a file system says of a folder it
 * will not make that it is not there (/proc).
 */
export function makeFolder(path: string, mode: number): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
  const above = dirname(path)
  if (above !== path) makeFolder(above, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  syncFolder(above)
}

/**
 * The same, for a folder that a process before this one may have made: it may have ended between
 * giving a name and syncing it, and what builds on that name from now on is not to outlast it. To
 * be called before anything is read there.
 */
export function makeSyncedFolder(path: string, mode: number): void {
  makeFolder(path, mode)
  for (const each of [dirname(path), path]) syncFolder(each)
}

/**
 * A new name is on the disk when its folder is. Where a folder may not be opened, or its file
 * system syncs none, that is as good as it gets.
 */
function syncFolder(path: string): void {
  let handle: number | undefined
  try {
    handle = openSync(path, 'r')
    fsyncSync(handle)
  } catch {
    // It is there, whoever made it.
  } finally {
    if (handle !== undefined) closeSync(handle)
  }
}
