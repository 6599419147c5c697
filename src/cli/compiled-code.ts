import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { after } from '../base/clock.ts'
import { writeDurably, writeDurablySync } from '../base/durable-file.ts'
import { makeFolder } from '../base/folder.ts'
import { whyUntrusted } from '../base/ownership.ts'

/** When the code is kept: by then most of a hub's code has run, and the next end may be sudden. */
export const keptMs = 60_000

/** The bundle of `start` as it was compiled by `bundled-start.ts`. */
export interface BundleScript {
  readonly source: string
  /** The code that V8 has compiled of it up to now. */
  createCachedData(): Buffer
  /** Whether it was compiled from the code that an earlier process has kept. */
  readonly isReused: boolean
}

/** Given to the bundle by the function that it is (`bin/bundle.js`); there is none in sources. */
declare const bundleScript: BundleScript | undefined

/** In the folder of the code. */
const bundleCode = 'start.code'

/** Checksums of the source and of the code. */
const headBytes = 8

/**
 * The code of the bundle that an earlier process has left in `folder`; `undefined` where there is
 * none of this source, it is damaged, or others could have written it. V8 itself refuses code of
 * another version of it, or made with other flags.
 */
export function keptCode(folder: string, source: string): Buffer | undefined {
  try {
    if (!existsSync(folder) || !isOwn(folder)) return undefined
    const kept = readFileSync(join(folder, bundleCode))
    const code = kept.subarray(headBytes)
    const isWhole = kept.readUInt32LE(0) === crc32(source) && kept.readUInt32LE(4) === crc32(code)
    return isWhole ? code : undefined
  } catch {
    return undefined
  }
}

/** The file of it. */
export function codeToKeep({ source, createCachedData }: Omit<BundleScript, 'isReused'>): Buffer {
  const code = createCachedData()
  const head = Buffer.alloc(headBytes)
  head.writeUInt32LE(crc32(source), 0)
  head.writeUInt32LE(crc32(code), 4)
  return Buffer.concat([head, code])
}

/** Keeps the code of the bundle before a process ends early that had none. */
let keepEarly = (): void => undefined

/** To be called before the process ends. */
export function keepCodeAtEnd(): void {
  try {
    keepEarly()
  } catch {
    // The next start compiles.
  }
}

/**
 * Keeps the code of the bundle in `folder`: that of the functions which a start calls. Not where
 * other users could write there, nor of sources.
 */
export function keepCompiledCode(folder: string): void {
  if (typeof bundleScript === 'undefined' || !isOwn(folder)) return
  const script = bundleScript
  const file = join(folder, bundleCode)
  if (!script.isReused) keepEarly = () => writeDurablySync(file, codeToKeep(script))
  after(keptMs, () => {
    keepEarly = () => undefined
    void writeDurably(file, codeToKeep(script)).catch(() => undefined)
  })
}

/** The folder of the code. */
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
