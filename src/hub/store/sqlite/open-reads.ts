import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { Reads } from './reads.ts'
import { isLater, isOlder, migrate, versionOf } from './schema.ts'
import type { Seal } from './seal.ts'

/** Beside a writer. Throws what SQLite throws. */
export const openReads = (path: string, seal: Seal): Reads =>
  readsOf(new DatabaseSync(path, { readOnly: true, timeout: 2000 }), seal)

/**
 * Of a database that nobody can write to at present, as its disk is full or takes no writes at all:
 * without the file beside it that SQLite would share with a writer, which could not be made, or
 * would keep a later writer of this process from writing. What a writer adds meanwhile is not seen.
 * As it locks nothing, and its end would undo locks that a writer of this process has on the file,
 * it is to be closed before there is one or after. `undefined`: there is nothing to read, or no way
 * to.
 */
export function openReadsAlone(path: string, seal: Seal): Reads | undefined {
  const of = (name: string, value: string): URL => {
    const url = pathToFileURL(path)
    url.searchParams.set(name, value)
    return url
  }
  // Where there is no log, and none can be made, there is nothing but the file.
  const ways = [of('vfs', 'unix-none'), ...(isEmpty(`${path}-wal`) ? [of('immutable', '1')] : [])]
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
      // Then the next.
    }
  }
  return undefined
}

/**
 * Of what an earlier release left, which cannot be brought to the present one in its place: all but
 * the bodies, which have been the same since the first, is copied into memory and brought there.
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

/** Of a store in which nothing was ever written. */
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
