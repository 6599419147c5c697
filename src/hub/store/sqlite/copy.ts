import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { isLater, LaterSchema, versionOf } from './schema.ts'
import { lock } from './lock.ts'
import { databaseFile, lockFile } from './store-directory.ts'

/** A copy of a store, which cannot be used. */
class DamagedCopy extends Error {
  readonly code = 'DAMAGED_COPY'
}

/**
 * Copies the database in `directory` to the new file `to`, closed to others, as of one moment, also
 * while a hub writes it. Sealed records stay sealed. Resolves to the schema version; `undefined`:
 * there is no database, or an empty one.
 */
export async function copyDatabase(directory: string, to: string): Promise<number | undefined> {
  const path = join(directory, databaseFile)
  if (!existsSync(path)) return undefined
  closeSync(openSync(to, 'wx', 0o600))
  using source = new DatabaseSync(path, { readOnly: true, timeout: busyMs })
  // All pages in one step: after a commit in between, SQLite would begin again.
  await backup(source, to, { rate: 0x7fff_ffff })
  return checkCopy(to, path) || undefined
}

const busyMs = 10_000

/**
 * The schema version of a copy, which is read without a trace beside it. Throws where it is damaged
 * or of a later release. `shown` is its name in messages.
 */
export function checkCopy(path: string, shown: string): number {
  const url = pathToFileURL(path)
  url.search = 'immutable=1'
  using db = new DatabaseSync(url, { readOnly: true })
  if (isLater(db)) throw new LaterSchema(versionOf(db))
  const found = firstFault(db)
  if (found !== undefined) throw new DamagedCopy(`the store in ${shown} is damaged: ${found}`)
  return versionOf(db)
}

function firstFault(db: DatabaseSync): string | undefined {
  try {
    const said = String(db.prepare('PRAGMA quick_check(1)').get()?.['quick_check'])
    return said === 'ok' ? undefined : said
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause)
  }
}

/**
 * Why this release could not use the store in `directory`: a later one wrote it. `undefined` where
 * it could, where there is none, and where it cannot be read.
 */
export function whyLater(directory: string): string | undefined {
  const path = join(directory, databaseFile)
  if (!existsSync(path)) return undefined
  try {
    using db = new DatabaseSync(path, { readOnly: true, timeout: busyMs })
    return isLater(db) ? new LaterSchema(versionOf(db), path).message : undefined
  } catch {
    return undefined
  }
}

/** Locks the store's directory as a hub does. Throws `DirectoryInUse` while one runs. */
export const lockDirectory = (directory: string): Disposable => lock(join(directory, lockFile))

/**
 * The files of the database in `directory`, in the order in which to remove those of the former
 * one.
 */
export const databaseFiles = (directory: string) => {
  const database = join(directory, databaseFile)
  return {
    database,
    rest: [`${database}-wal`, `${database}-shm`],
    restored: `${database}.restored`,
  }
}
