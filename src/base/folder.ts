import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a folder and its missing parents, each with `mode`, durably. Throws the error of the
 * first that cannot be created. mkdir's own `recursive` would loop for ever on a file system that
 * answers ENOENT for a folder it refuses to create (/proc).
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
 * The same, for a folder that an earlier process may have created without syncing its name: what is
 * stored by that name must not survive the folder. Called before anything is read there.
 */
export function makeSyncedFolder(path: string, mode: number): void {
  makeFolder(path, mode)
  for (const each of [dirname(path), path]) syncFolder(each)
}

/**
 * A new name is durable when its folder is synced. Best effort: some folders may not be opened, and
 * some file systems do not sync them.
 */
export function syncFolder(path: string): void {
  let handle: number | undefined
  try {
    handle = openSync(path, 'r')
    fsyncSync(handle)
  } catch {
    // The folder exists.
  } finally {
    if (handle !== undefined) closeSync(handle)
  }
}
