import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, readSync, realpathSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** `disk.c`, compiled into `folder`; or why it cannot be. */
export function disk(folder: string): { readonly library: string } | { readonly reason: string } {
  if (process.platform !== 'linux') return { reason: 'LD_PRELOAD is of Linux' }
  const library = join(folder, 'disk.so')
  const source = join(import.meta.dirname, 'disk.c')
  const flags = ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror']
  try {
    execFileSync('cc', [...flags, '-o', library, source, '-ldl', '-lpthread'], { stdio: 'pipe' })
    return { library }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return { reason: 'there is no cc' }
    throw cause
  }
}

/** The places of `disk.c`, in its order. */
const places = [
  'left',
  'steps',
  'delay',
  'syncsBegun',
  'syncsEnded',
  'bytes',
  'writes',
  'byMain',
  'failWrites',
  'failSyncs',
  'hold',
  'failEvery',
] as const
type Place = (typeof places)[number]

/**
 * The disk under a program that is started with `env`: controls its faults, and records its steps.
 */
export class FaultyDisk implements Disposable {
  /** For the program: the files below `folder` are watched. */
  readonly env: Readonly<Record<string, string>>
  readonly #control: number

  /** `log`: the file in which everything is written down, to be read by `recorded`. */
  constructor(library: string, folder: string, control: string, log?: string) {
    this.#control = openSync(control, 'w+')
    writeSync(this.#control, Buffer.alloc(4096))
    this.env = {
      LD_PRELOAD: library,
      DISK_FOLDER: realpathSync(folder),
      DISK_CONTROL: control,
      ...(log !== undefined && { DISK_LOG: log }),
    }
  }

  /**
   * It is killed instead of taking its `step`th step from now on: a write, a sync, a name changed,
   * a message sent.
   */
  killAt(step: number): void {
    this.#set('left', step)
  }

  /** Every sync takes so long from now on. */
  delaySyncs(milliseconds: number): void {
    this.#set('delay', milliseconds * 1000)
  }

  /** Every `nth` sync of a file fails: what it was for may never reach the disk. */
  failEverySync(nth: number): void {
    this.#set('failEvery', nth)
  }

  /** Holds back all syncs that begin from now on. */
  holdSyncs(held: boolean): void {
    this.#set('hold', held ? 1 : 0)
  }

  /** Every write fails from now on, with this error number; 0: none. */
  failWrites(errno: number): void {
    this.#set('failWrites', errno)
  }

  failSyncs(errno: number): void {
    this.#set('failSyncs', errno)
  }

  count(place: Place): number {
    const word = Buffer.alloc(8)
    readSync(this.#control, word, 0, 8, places.indexOf(place) * 8)
    return Number(word.readBigUInt64LE())
  }

  #set(place: Place, value: number): void {
    const word = Buffer.alloc(8)
    word.writeBigUInt64LE(BigInt(value))
    writeSync(this.#control, word, 0, 8, places.indexOf(place) * 8)
  }

  [Symbol.dispose](): void {
    closeSync(this.#control)
  }
}

/**
 * One thing done to the files below the folder, or a moment marked in its file `told`. Paths are
 * whole. `end`: how long the log was once it stood there, so that a moment outside of the program
 * can be set beside it.
 */
export type DiskStep = { readonly thread: number; readonly end: number } & (
  | { readonly kind: 'create' | 'mkdir' | 'unlink'; readonly inode: number; readonly path: string }
  | { readonly kind: 'rename'; readonly inode: number; readonly path: string; readonly to: string }
  | { readonly kind: 'write'; readonly inode: number; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly inode: number; readonly length: number }
  | { readonly kind: 'sync' | 'synced' | 'lost'; readonly inode: number }
  | { readonly kind: 'mark'; readonly text: string }
)

const kinds = [
  undefined,
  'create',
  'write',
  'truncate',
  'unlink',
  'rename',
  'mkdir',
  'sync',
  'synced',
  'mark',
  'lost',
] as const

/** What `log` says was done, in its order. What a kill cut short at the end is left out. */
export function readSteps(log: string): DiskStep[] {
  const all = readFileSync(log)
  const steps: DiskStep[] = []
  for (let at = 0; at + 32 <= all.length;) {
    const kind = kinds[all.readUInt32LE(at)]
    const thread = all.readUInt32LE(at + 4)
    const inode = Number(all.readBigUInt64LE(at + 8))
    const offset = Number(all.readBigUInt64LE(at + 16))
    const pathEnd = at + 32 + all.readUInt32LE(at + 24)
    const end = pathEnd + all.readUInt32LE(at + 28)
    if (end > all.length) break
    const path = all.toString('utf8', at + 32, pathEnd)
    const data = all.subarray(pathEnd, end)
    at = end
    switch (kind) {
      case 'create':
      case 'mkdir':
      case 'unlink':
        steps.push({ kind, thread, end, inode, path })
        break
      case 'rename':
        steps.push({ kind, thread, end, inode, path, to: data.toString() })
        break
      case 'write':
        steps.push({ kind, thread, end, inode, at: offset, bytes: data })
        break
      case 'truncate':
        steps.push({ kind, thread, end, inode, length: offset })
        break
      case 'sync':
      case 'synced':
      case 'lost':
        steps.push({ kind, thread, end, inode })
        break
      case 'mark':
        steps.push({ kind, thread, end, text: data.toString() })
        break
      case undefined:
        throw new Error(`no record at ${at}`)
    }
  }
  return steps
}
