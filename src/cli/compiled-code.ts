import { readdirSync, rmSync } from 'node:fs'
import { enableCompileCache, flushCompileCache, getCompileCacheDir } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { after } from '../base/clock.ts'
import { makeFolder } from '../base/folder.ts'
import { whyUntrusted } from '../base/ownership.ts'

/**
 * When what was compiled is written down, besides at an orderly end: what follows a power cut is to
 * start quickly, too. By then most of what a hub runs has been run.
 */
const writtenMs = 60_000

/**
 * Takes what is loaded from now on as it was compiled when it was loaded before, which is kept in
 * `folder`: a fifth of the work of a start. Where it cannot be kept, or others could write there,
 * all is compiled as ever. Node itself takes nothing that is damaged, or of another release, of the
 * hub or of its own.
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
 * Whether it is there, perhaps just made, and no other user may put code in it, or it in another's
 * place.
 */
function isOwn(folder: string): boolean {
  try {
    makeFolder(folder, 0o700)
    return whyUntrusted(folder) === undefined
  } catch {
    return false
  }
}

/** What other releases of Node have left. */
function forgetOthers(folder: string, inUse: string): void {
  try {
    for (const other of readdirSync(folder)) {
      if (other !== inUse) rmSync(join(folder, other), { recursive: true, force: true })
    }
  } catch {
    // It takes room on the disk, and nothing else.
  }
}
