import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { elapsed, pause } from './clock.ts'
import { restrictMode } from './file-mode.ts'

/** SQLite's codes for a locked file, and for one that is no database. */
const busy = 5
const noDatabase = 26

/** A lock is taken: by another process, or another part of this one. */
export class LockTaken extends Error {
  readonly code = 'TAKEN'
  /** Which process has it, where that is known. */
  readonly pid: number | undefined

  constructor(message: string, pid: number | undefined, cause?: unknown) {
    super(message, { cause })
    this.pid = pid
  }
}

/**
 * Locks `path` against other processes, and other parts of this one, until it is disposed of or the
 * process ends in whatever way: an exclusive transaction on a database of its own, which stays
 * empty. The kernel has the lock with the file itself: it counts between containers, too, that have
 * the file mounted. Throws `LockTaken`.
 */
export function takeLock(path: string): Disposable {
  try {
    return exclusive(path)
  } catch (cause) {
    if (!(cause instanceof Error && 'errcode' in cause)) throw cause
    if (cause.errcode === busy) throw new LockTaken(`${path} is locked`, lockHolder(path), cause)
    if (cause.errcode !== noDatabase) throw cause
    rmSync(path)
    return exclusive(path)
  }
}

interface Patience {
  readonly ms: number
  readonly signal?: AbortSignal
  /** Called before the first wait. */
  readonly onTaken?: (cause: LockTaken) => void
}

const betweenMs = 200

/**
 * Calls `take` until it no longer throws `LockTaken`. Rejects with that after so long, and with the
 * reason of the signal.
 */
export async function onceFree<T>(take: () => T, { ms, signal, onTaken }: Patience): Promise<T> {
  let isFirst = true
  for (const begun = elapsed(); ;) {
    try {
      return take()
    } catch (cause) {
      if (!(cause instanceof LockTaken) || elapsed() - begun >= ms) throw cause
      if (isFirst) onTaken?.(cause)
      isFirst = false
    }
    await pause(betweenMs, signal)
    signal?.throwIfAborted()
  }
}

/**
 * Whether another process has locked `path`. It changes nothing; where /proc/locks does not say, it
 * has a shared lock for an instant.
 */
export function isLocked(path: string): boolean {
  if (!existsSync(path)) return false
  if (lockHolder(path) !== undefined) return true
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    db.prepare('SELECT count(*) FROM sqlite_schema').get()
    return false
  } catch (cause) {
    return cause instanceof Error && 'errcode' in cause && cause.errcode === busy
  } finally {
    db.close()
  }
}

function exclusive(path: string): Disposable {
  createClosed(path)
  const db = new DatabaseSync(path)
  try {
    db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return db
  } catch (cause) {
    db.close()
    throw cause
  }
}

/** Not opened if it exists: closing it would release the locks that this process has on it. */
function createClosed(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600))
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')) throw cause
    restrictMode(path, 0o600)
  }
}

/**
 * The process that holds a lock on the file according to /proc/locks (proc(5)); `undefined` where
 * that is not known: not Linux, another PID namespace, a file system with other device numbers.
 */
function lockHolder(path: string): number | undefined {
  try {
    const { dev, ino } = statSync(path)
    const major = (dev >> 8) & 0xfff
    const minor = (dev & 0xff) | ((dev >> 12) & 0xfff00)
    const hex = (number: number): string => number.toString(16).padStart(2, '0')
    const file = `${hex(major)}:${hex(minor)}:${ino}`
    const held = readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .map((line) => line.split(/\s+/))
      .find((fields) => fields.includes(file) && fields.includes('WRITE'))
    const pid = Number(held?.[held.indexOf(file) - 1])
    return pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}
