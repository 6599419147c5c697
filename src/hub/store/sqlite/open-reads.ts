import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { Reads } from './reads.ts'
import { isLater, isOlder, migrate, versionOf } from './schema.ts'
import type { Seal } from './seal.ts'

/** Opens a read connection beside a writer. Throws SQLite's errors. */
export const openReads = (path: string, seal: Seal): Reads =>
  readsOf(new DatabaseSync(path, { readOnly: true, timeout: 2000 }), seal)

/**
 * Opens a read connection to a database without a writer, on a disk that is full or refuses writes.
 * It does without the shared memory file of SQLite, which could not be created, or would keep a
 * later writer of this process from writing; so it does not see later writes. It takes no locks,
 * and closing it would release those of a writer of this process: it must be closed before there is
 * a writer, or after. `undefined`: there is nothing to read, or no way to.
 */
export function openReadsAlone(path: string, seal: Seal): Reads | undefined {
  // Without a WAL, and where none can be created, there is only the database file.
  return firstReadable(
    isEmpty(`${path}-wal`) ? [unlocked(path), immutable(path)] : [unlocked(path)],
    seal,
  )
}

/**
 * The same where no file may be created or changed: SQLite would create a WAL where there is none.
 */
export const openReadsUntouched = (path: string, seal: Seal): Reads | undefined =>
  firstReadable([isEmpty(`${path}-wal`) ? immutable(path) : unlocked(path)], seal)

const unlocked = (path: string): URL => withParameter(path, 'vfs', 'unix-none')
const immutable = (path: string): URL => withParameter(path, 'immutable', '1')

function withParameter(path: string, name: string, value: string): URL {
  const url = pathToFileURL(path)
  url.searchParams.set(name, value)
  return url
}

function firstReadable(ways: readonly URL[], seal: Seal): Reads | undefined {
  for (const way of ways) {
    try {
      const db = new DatabaseSync(way, { readOnly: true })
      db.exec('PRAGMA locking_mode = EXCLUSIVE')
      if (isLater(db)) {
        db.close()
        continue
      }
      if (!isOlder(db)) return readsOf(db, seal)
      db.close()
      return readsOfOlder(way, seal)
    } catch {
      // The next way may work.
    }
  }
  return undefined
}

/**
 * Opens a database of an earlier release that cannot be migrated in place: copies all but the
 * bodies, whose format has never changed, into memory and migrates the copy.
 */
function readsOfOlder(way: URL, seal: Seal): Reads {
  const db = new DatabaseSync(':memory:')
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE')
    way.searchParams.set('mode', 'ro')
    db.prepare('ATTACH ? AS old').run(way.href)
    const parts = db
      .prepare(
        `SELECT type, name, sql FROM old.sqlite_schema
         WHERE type IN ('table', 'view') AND name <> 'body' AND name NOT GLOB 'sqlite_*' ORDER BY type`,
      )
      .all()
    for (const { type, name, sql } of parts) {
      db.exec(String(sql))
      if (type === 'table')
        db.exec(`INSERT INTO main.${String(name)} SELECT * FROM old.${String(name)}`)
    }
    db.exec(`PRAGMA main.user_version = ${versionOf(db, 'old')}`)
    migrate(db)
  } catch (cause) {
    db.close()
    throw cause
  }
  return readsOf(db, seal)
}

/** An empty store. */
export function emptyReads(seal: Seal): Reads {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  return readsOf(db, seal)
}

function readsOf(db: DatabaseSync, seal: Seal): Reads {
  try {
    return new Reads(db, seal)
  } catch (cause) {
    db.close()
    throw cause
  }
}

const isEmpty = (path: string): boolean =>
  (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0
