import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { elapsed, now, sleep } from '../../base/clock.ts'
import { makeFolder } from '../../base/folder.ts'
import { StoreFailure } from '../store.ts'
import { sharedDiskWork } from './disk-work.ts'
import { lock, Taken } from './lock.ts'
import type { WriterOptions } from './messages.ts'
import { Reads } from './reads.ts'
import { Seal } from './seal.ts'
import { Snapshots } from './snapshots.ts'
import { SqliteStore, type ReportTrouble } from './sqlite-store.ts'
import { startWriter } from './writer-thread.ts'

export interface StoreOptions {
  /** Made if missing, and closed to others. */
  readonly directory: string
  /** The key that secrets are sealed with: 32 bytes. */
  readonly sealingKey: Uint8Array
  /** Bytes the database may grow to; what does not fit is refused. */
  readonly maxBytes?: number
  /** How long to wait for another process that has the directory open; absent: not at all. */
  readonly patienceMs?: number
  /** Told of everything that went wrong, for logs and metrics. */
  readonly report: ReportTrouble
  /** Told of each commit of what was written, with its bytes of objects and documents; not of one that only keeps house. */
  readonly onCommitted?: (bytes: number) => void
}

const file = 'objects.db'
const lockFile = 'lock.db'

/** What the database takes on the disk, with what is written ahead of it and not yet in its place. */
export const bytesOnDisk = (directory: string): number =>
  ['', '-wal'].reduce((sum, suffix) => {
    const found = statSync(join(directory, file + suffix), { throwIfNoEntry: false })
    return sum + (found?.size ?? 0)
  }, 0)

/**
 * Opens the store, as it was left or as a crash left it. A database that cannot be used is set aside under another name, which is
 * reported, and a new one begun. Rejects with a `StoreFailure` where there is no writing at all, and where another store, of this
 * process or another, has the directory open.
 */
export async function openStore(options: StoreOptions): Promise<SqliteStore> {
  const held = await taken(options)
  try {
    return await openHeld(options, held)
  } catch (cause) {
    held[Symbol.dispose]()
    throw cause
  }
}

async function openHeld(
  { directory, sealingKey, maxBytes, report, onCommitted = () => undefined }: StoreOptions,
  held: Disposable,
): Promise<SqliteStore> {
  const path = join(directory, file)
  prepare(directory)
  const options: WriterOptions = { path, sealingKey, maxBytes, diskWork: sharedDiskWork() }
  const crashed = logLeft(path)
  let opened = await startWriter(options)
  if (!opened.ok && opened.unusable) {
    report('set-aside', new StoreFailure('the database cannot be used', { cause: opened.message }))
    setAside(directory)
    createClosed(path)
    opened = await startWriter(options)
  }
  if (!opened.ok) throw new StoreFailure('the store cannot be opened', { cause: opened.message })
  if (opened.resealed) {
    report('resealed', new StoreFailure('the key is another one: what was sealed is forgotten'))
  }
  const snapshots = new Snapshots()
  const { worker } = opened
  const reads = await readsOf(options, worker)
  return new SqliteStore({ worker, options, crashed, reads, snapshots, held, report, onCommitted })
}

/** Whether an earlier run has left its log, which it does not where it ends by itself. */
const logLeft = (path: string): boolean =>
  (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0

/** A writer without a reader is of no use, and would keep what the next attempt needs. */
async function readsOf({ path, sealingKey }: WriterOptions, worker: Worker): Promise<Reads> {
  try {
    return new Reads(path, new Seal(sealingKey))
  } catch (cause) {
    await worker.terminate()
    throw new StoreFailure('the store cannot be opened', { cause })
  }
}

/** How often a directory that another process is about to let go of is tried. */
const retryMs = 20

async function taken({ directory, patienceMs = 0 }: StoreOptions): Promise<Disposable> {
  const until = elapsed() + patienceMs
  for (;;) {
    try {
      return take(directory)
    } catch (failure) {
      const busy = failure instanceof StoreFailure && failure.cause instanceof Taken
      if (!busy || elapsed() >= until) throw failure
      await sleep(retryMs)
    }
  }
}

/** Before anything else is touched: what lies there may be in use. */
function take(directory: string): Disposable {
  try {
    makeFolder(directory, 0o700)
    chmodSync(directory, 0o700)
    return lock(join(directory, lockFile))
  } catch (cause) {
    const why = cause instanceof Taken ? ': another process uses it' : ''
    throw new StoreFailure(`the store cannot be opened${why}`, { cause })
  }
}

function prepare(directory: string): void {
  try {
    createClosed(join(directory, file))
  } catch (cause) {
    throw new StoreFailure('the store cannot be opened', { cause })
  }
}

/** SQLite gives its other files the mode that the database has. */
function createClosed(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
  for (const each of [path, `${path}-wal`, `${path}-shm`])
    if (existsSync(each)) chmodSync(each, 0o600)
}

/** The last one set aside is kept, for whoever wants to look. */
function setAside(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (name.startsWith(`${file}.unusable-`)) rmSync(join(directory, name), { force: true })
  }
  const mark = `unusable-${new Date(now()).toISOString().replaceAll(':', '')}`
  for (const suffix of ['', '-wal', '-shm']) {
    const path = join(directory, file + suffix)
    if (existsSync(path)) renameSync(path, join(directory, `${file}.${mark}${suffix}`))
  }
}
