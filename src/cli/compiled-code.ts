import { existsSync, readdirSync, rmSync } from 'node:fs'
import { enableCompileCache, flushCompileCache, getCompileCacheDir } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { after } from '../base/clock.ts'
import { makeFolder } from '../base/folder.ts'
import { whyUntrusted } from '../base/ownership.ts'

/**
 * When the cache is written, besides an exit that `endProcess` leaves to Node: a start after a
 * power cut is to be fast too. By then most of a hub's code has run.
 */
const writtenMs = 60_000

/**
 * Uses Node's compile cache in `folder` for modules that are loaded from now on, which saves a
 * fifth of the work of a start. Without it, or if other users could write there, modules are
 * compiled as usual. Node itself ignores damaged entries, and those of another release of the hub
 * or of Node.
 */
export function keepCompiledCode(folder: string): void {
  if (!isOwn(folder)) return
  enableCompileCache(folder)
  const inUse = getCompileCacheDir()
  if (inUse === undefined || dirname(inUse) !== folder) return
  forgetOthers(folder, basename(inUse))
  after(writtenMs, flushCompileCache)
}

/**
 * Uses the cache that an earlier start has left in `folder`, for the modules of `start` itself,
 * which are loaded before the configuration is read. Creates nothing.
 */
export function reuseCompiledCode(folder: string): void {
  if (existsSync(folder) && isOwn(folder)) enableCompileCache(folder)
}

/** The folder of the cache. */
export const compiledIn = (rootDir: string): string => join(rootDir, 'compiled')

/** Whether the folder exists or could be created, and no other user may write or replace it. */
function isOwn(folder: string): boolean {
  try {
    makeFolder(folder, 0o700)
    return whyUntrusted(folder) === undefined
  } catch {
    return false
  }
}

/** Removes the caches of other releases of Node. */
function forgetOthers(folder: string, inUse: string): void {
  try {
    for (const other of readdirSync(folder)) {
      if (other !== inUse) rmSync(join(folder, other), { recursive: true, force: true })
    }
  } catch {
    // The rest only takes disk space.
  }
}
