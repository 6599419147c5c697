import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { restrictMode } from '../../../base/file-mode.ts'

/** SQLite's codes for a locked file, and for one that is no database. */
const busy = 5
const noDatabase = 26

/** Another store uses the directory. */
export class DirectoryInUse extends Error {
  readonly code = 'TAKEN'
  constructor(lock: string, cause?: unknown) {
    const pid = lockHolder(lock)
    const holder = pid === undefined ? 'another hub' : `another hub, process ${pid},`
    super(`${holder} uses ${dirname(lock)}: stop it, or give this one a --root-dir of its own`, {
      cause,
    })
  }
}

/**
 * Locks `path` against other processes, and other stores of this one, until it is disposed of or
 * the process ends in whatever way: an exclusive transaction on a database of its own, which stays
 * empty. Throws `DirectoryInUse`.
 */
export function lock(path: string): Disposable {
  try {
    return take(path)
  } catch (cause) {
    if (!(cause instanceof Error && 'errcode' in cause)) throw cause
    if (cause.errcode === busy) throw new DirectoryInUse(path, cause)
    if (cause.errcode !== noDatabase) throw cause
    rmSync(path)
    return take(path)
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

function take(path: string): Disposable {
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
