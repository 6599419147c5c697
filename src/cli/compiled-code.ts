import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { enableCompileCache, flushCompileCache, getCompileCacheDir } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import { after } from '../base/clock.ts'
import { writeDurably, writeDurablySync } from '../base/durable-file.ts'
import { makeFolder } from '../base/folder.ts'
import { whyUntrusted } from '../base/ownership.ts'

/**
 * When the cache is written, besides an exit that `endProcess` leaves to Node: a start after a
 * power cut is to be fast too. By then most of a hub's code has run.
 */
const writtenMs = 60_000

/** The bundle of `start` as it was compiled by `bundled-start.ts`. */
export interface BundleScript {
  readonly source: string
  /** The code that V8 has compiled of it up to now. */
  createCachedData(): Buffer
  /** How it was compiled: from scratch, or from code that a process kept early, or late. */
  readonly from: 'source' | KeptCode['from']
}

/** Given to the bundle by the function that it is (`bin/bundle.js`); there is none in sources. */
declare const bundleScript: BundleScript | undefined

/**
 * Code of the bundle. `early`: the functions that had run when a process ended soon. `late`: those
 * of a hub that has been up for a while.
 */
interface KeptCode {
  readonly from: 'early' | 'late'
  readonly code: Buffer
}

/** In the folder of the cache. */
const bundleCode = 'start.code'

/** Checksums of the source and of the code, and whether it was kept late. */
const headBytes = 9

/**
 * The code of the bundle that an earlier process has left in `folder`; `undefined` where there is
 * none of this source, it is damaged, or others could have written it. V8 itself refuses code of
 * another version of it, or made with other flags.
 */
export function keptCode(folder: string, source: string): KeptCode | undefined {
  try {
    if (!existsSync(folder) || !isOwn(folder)) return undefined
    const kept = readFileSync(join(folder, bundleCode))
    const code = kept.subarray(headBytes)
    const isWhole = kept.readUInt32LE(0) === crc32(source) && kept.readUInt32LE(4) === crc32(code)
    return isWhole ? { from: kept[8] === 1 ? 'late' : 'early', code } : undefined
  } catch {
    return undefined
  }
}

/** The file of it. */
export function codeToKeep(
  { source, createCachedData }: Omit<BundleScript, 'from'>,
  isLate: boolean,
): Buffer {
  const code = createCachedData()
  const head = Buffer.alloc(headBytes)
  head.writeUInt32LE(crc32(source), 0)
  head.writeUInt32LE(crc32(code), 4)
  head[8] = isLate ? 1 : 0
  return Buffer.concat([head, code])
}

/** Keeps the code of the bundle before a process ends that had none. */
let keepEarly = (): void => undefined

/** To be called before the process ends otherwise than by `process.exit`, too. */
export function keepCodeAtEnd(): void {
  try {
    keepEarly()
  } catch {
    // The next start compiles.
  }
}

/**
 * Keeps the code of the bundle in `folder`: the functions that a start calls, which Node's cache
 * lacks.
 */
function keepBundle(folder: string, script: BundleScript): void {
  const file = join(folder, bundleCode)
  if (script.from === 'late') return
  if (script.from === 'source')
    keepEarly = () => {
      writeDurablySync(file, codeToKeep(script, false))
    }
  after(writtenMs, () => {
    keepEarly = () => undefined
    void writeDurably(file, codeToKeep(script, true)).catch(() => undefined)
  })
}

/**
 * Uses Node's compile cache in `folder` for modules that are loaded from now on, which saves a
 * fifth of the work of a start. Without it, or if other users could write there, modules are
 * compiled as usual. Node itself ignores damaged entries, and those of another release of the hub
 * or of Node.
 */
export function keepCompiledCode(folder: string): void {
  if (!isOwn(folder)) return
  if (typeof bundleScript !== 'undefined') keepBundle(folder, bundleScript)
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
      if (other !== inUse && !other.startsWith(bundleCode))
        rmSync(join(folder, other), { recursive: true, force: true })
    }
  } catch {
    // The rest only takes disk space.
  }
}
