import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Random } from '../fuzz/random.ts'
import type { DiskStep } from './disk.ts'

/** What a disk writes whole or not at all. */
const sector = 512

type Change =
  | { readonly kind: 'write'; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly length: number }

class File {
  /** What the disk has in any case. */
  bytes: Buffer = Buffer.alloc(0)
  /** What came since, in its order. */
  pending: Change[] = []
}

class Folder {
  readonly entries = new Map<string, File | Folder>()
  pending: Naming[] = []
}

/** Changes of names that happen together or not at all. */
type Naming = ReadonlyMap<string, File | Folder | undefined>

/**
 * A disk that keeps what was synced, and a random part of everything else. It is fed step by step,
 * and at any moment `cutPower` builds a state that a power cut could leave. It promises no more
 * than POSIX: a synced file is not yet a synced name; a name is atomic, and so is each sector of a
 * file; unsynced writes may reach the disk in any order.
 */
export class FragileDisk {
  readonly #root: Folder
  readonly #rootPath: string
  /** By inode number, which is used again once the file is gone. */
  readonly #inodes = new Map<number, File | Folder>()
  /** How much of the pending writes each thread's sync covers. */
  readonly #syncing = new Map<string, number>()

  /** An empty folder, as it is when the program starts. */
  constructor(root: string) {
    this.#rootPath = root
    this.#root = new Folder()
    this.#inodes.set(statSync(root).ino, this.#root)
  }

  feed(step: DiskStep, random: Random): void {
    switch (step.kind) {
      case 'create':
        return this.#make(step.path, step.inode, new File())
      case 'mkdir':
        return this.#make(step.path, step.inode, new Folder())
      case 'unlink':
        return this.#rename(dirname(step.path), [[basename(step.path), undefined]])
      case 'rename': {
        if (dirname(step.path) !== dirname(step.to)) throw new Error('moved to another folder')
        const moved = this.#inodes.get(step.inode)
        return this.#rename(dirname(step.path), [
          [basename(step.path), undefined],
          [basename(step.to), moved],
        ])
      }
      case 'write':
        this.#file(step.inode)?.pending.push({ kind: 'write', at: step.at, bytes: step.bytes })
        return
      case 'truncate':
        this.#file(step.inode)?.pending.push({ kind: 'truncate', length: step.length })
        return
      case 'sync': {
        const length = this.#inodes.get(step.inode)?.pending.length ?? 0
        this.#syncing.set(`${step.thread}/${step.inode}`, length)
        return
      }
      case 'synced':
        return this.#synced(step.inode, this.#syncing.get(`${step.thread}/${step.inode}`) ?? 0)
      case 'lost':
        return this.#lost(
          step.inode,
          this.#syncing.get(`${step.thread}/${step.inode}`) ?? 0,
          random,
        )
      case 'mark':
    }
  }

  /** Writes a state to `target` that a power cut could leave now. */
  cutPower(target: string, random: Random): void {
    write(this.#root, target, random)
  }

  #make(path: string, inode: number, made: File | Folder): void {
    this.#inodes.set(inode, made)
    this.#rename(dirname(path), [[basename(path), made]])
  }

  #rename(path: string, names: readonly [string, File | Folder | undefined][]): void {
    const folder = this.#folder(path)
    folder.pending.push(new Map(names))
  }

  #file(inode: number): File | undefined {
    const found = this.#inodes.get(inode)
    return found instanceof File ? found : undefined
  }

  /** As the program sees it, whatever the disk has. */
  #folder(path: string): Folder {
    if (path === this.#rootPath) return this.#root
    const above = this.#folder(dirname(path))
    const name = basename(path)
    const last = above.pending.findLast((naming) => naming.has(name))
    const found = last ? last.get(name) : above.entries.get(name)
    if (!(found instanceof Folder)) throw new Error(`${path} is no folder that was made`)
    return found
  }

  #synced(inode: number, count: number): void {
    const synced = this.#inodes.get(inode)
    if (synced instanceof File) {
      for (const change of synced.pending.splice(0, count))
        synced.bytes = done(synced.bytes, change)
    } else if (synced) {
      for (const naming of synced.pending.splice(0, count)) give(synced.entries, naming)
    }
  }

  /**
   * After a failed sync Linux counts as written what it could not write: no later sync tries again
   * (https://lwn.net/Articles/752063/).
   */
  #lost(inode: number, count: number, random: Random): void {
    const file = this.#inodes.get(inode)
    if (!(file instanceof File)) return
    for (const change of file.pending.splice(0, count))
      if (random.once(2)) file.bytes = done(file.bytes, change)
  }
}

function give(entries: Map<string, File | Folder>, naming: Naming): void {
  for (const [name, of] of naming) {
    if (of) entries.set(name, of)
    else entries.delete(name)
  }
}

function done(bytes: Buffer, change: Change): Buffer {
  if (change.kind === 'write') {
    const whole = withLength(bytes, Math.max(bytes.length, change.at + change.bytes.length))
    change.bytes.copy(whole, change.at)
    return whole
  }
  const cut = Buffer.alloc(change.length)
  bytes.copy(cut)
  return cut
}

/** Longer buffers get spare capacity, so that repeated appends do not copy them each time. */
function withLength(bytes: Buffer, length: number): Buffer {
  if (length <= bytes.length) return bytes.subarray(0, length)
  const room = bytes.buffer.byteLength - bytes.byteOffset
  if (length <= room && bytes.byteOffset === 0) {
    const longer = Buffer.from(bytes.buffer, 0, length)
    longer.fill(0, bytes.length)
    return longer
  }
  const longer = Buffer.from(new ArrayBuffer(Math.max(length, 2 * bytes.length)), 0, length)
  bytes.copy(longer)
  return longer
}

/** What becomes of the changes that no sync covered. */
const fates = ['none', 'all', 'first', 'last', 'some', 'whole'] as const

function write(folder: Folder, path: string, random: Random): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  for (const [name, of] of namesIn(folder, random)) {
    const target = join(path, name)
    if (of instanceof Folder) write(of, target, random)
    else writeFileSync(target, bytesOf(of, random), { mode: 0o600 })
  }
}

/** Any of the changes of names, but none without those that it depends on. */
function namesIn({ entries, pending }: Folder, random: Random): Map<string, File | Folder> {
  const found = new Map(entries)
  const fate = random.of(fates)
  const border = random.below(pending.length + 1)
  const lost = new Set<string>()
  pending.forEach((naming, at) => {
    const names = [...naming.keys()]
    if (survives(fate, at < border, random) && !names.some((name) => lost.has(name)))
      give(found, naming)
    else for (const name of names) lost.add(name)
  })
  return found
}

function survives(fate: (typeof fates)[number], early: boolean, random: Random): boolean {
  switch (fate) {
    case 'none':
      return false
    case 'all':
      return true
    case 'first':
      return early
    case 'last':
      return !early
    case 'some':
    case 'whole':
      return random.once(2)
  }
}

function bytesOf({ bytes, pending }: File, random: Random): Buffer {
  const fate = random.of(fates)
  const border = random.below(pending.length + 1)
  let found: Buffer = Buffer.alloc(bytes.length)
  bytes.copy(found)
  pending.forEach((change, at) => {
    const early = at < border
    // Of a partial write each sector has its own fate, and so has the one at its end.
    const apart =
      change.kind === 'write' && (fate === 'some' || (fate !== 'whole' && at === border))
    for (const part of apart ? sectorsOf(change) : [change]) {
      if (survives(apart ? 'some' : fate, early, random)) found = done(found, part)
      else if (part.kind === 'write' && apart) found = lengthened(found, part, random)
    }
  })
  return found
}

/**
 * A file's new length may be durable before its contents: then zeros are there, or what was there
 * before.
 */
function lengthened(
  bytes: Buffer,
  { at, bytes: lost }: Extract<Change, { kind: 'write' }>,
  random: Random,
): Buffer {
  const missing = at + lost.length - bytes.length
  if (missing <= 0 || random.once(2)) return bytes
  const junk = random.once(2) ? Buffer.alloc(missing) : Buffer.alloc(missing, random.next() & 0xff)
  return done(bytes, { kind: 'write', at: bytes.length, bytes: junk })
}

function sectorsOf({ at, bytes }: Extract<Change, { kind: 'write' }>): Change[] {
  const parts: Change[] = []
  for (let from = 0; from < bytes.length;) {
    const to = Math.min(bytes.length, from + sector - ((at + from) % sector))
    parts.push({ kind: 'write', at: at + from, bytes: bytes.subarray(from, to) })
    from = to
  }
  return parts
}
