import type { DatabaseSync } from 'node:sqlite'
import { isSealed, type Seal } from './seal.ts'
import type { ScopeKey } from './address.ts'

/**
 * Deletes staged objects and unreferenced bodies of the last process. Returns whether the key
 * differs from the one that sealed the stored secrets: these are then deleted with their
 * collections, so that no collection looks empty whose records only cannot be opened.
 */
export function cleanUp(db: DatabaseSync, seal: Seal): boolean {
  db.exec('BEGIN IMMEDIATE')
  try {
    if (db.prepare('SELECT 1 FROM staged LIMIT 1').get()) db.exec('DELETE FROM staged')
    const resealed = adoptKey(db, seal)
    dropUnreferenced(db)
    db.exec('COMMIT')
    return resealed
  } catch (cause) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw cause
  }
}

/** Deletes by gaps between the referenced ids: bodies are on many pages and references on few. */
function dropUnreferenced(db: DatabaseSync): void {
  const drop = db.prepare('DELETE FROM body WHERE id > ? AND id < ?')
  let last = 0
  for (const { body } of db
    .prepare(
      `SELECT body FROM member UNION SELECT body FROM single UNION SELECT body FROM told
       UNION SELECT previous_body FROM told WHERE previous_body IS NOT NULL ORDER BY body`,
    )
    .iterate()) {
    const id = Number(body)
    if (id > last + 1) drop.run(last, id)
    last = id
  }
  drop.run(last, Number.MAX_SAFE_INTEGER)
}

function adoptKey(db: DatabaseSync, seal: Seal): boolean {
  const before = db.prepare('SELECT fingerprint FROM seal').get()?.['fingerprint']
  const fingerprint = seal.fingerprint()
  if (before === fingerprint) return false
  if (before !== undefined) forgetSealed(db)
  db.exec('DELETE FROM seal')
  db.prepare('INSERT INTO seal (fingerprint) VALUES (?)').run(fingerprint)
  return before !== undefined
}

function forgetSealed(db: DatabaseSync): void {
  const scopes = db
    .prepare('SELECT id, identity, form, api_group, api_version, resource FROM scope')
    .all()
    .filter((row) => {
      const { identity, form, api_group: group, api_version: version, resource } = row
      return isSealed([identity, form, group, version, resource].map(String) as unknown as ScopeKey)
    })
  for (const { id } of scopes) {
    const scope = Number(id)
    for (const table of ['member', 'event']) {
      db.prepare(
        `DELETE FROM ${table} WHERE collection IN (SELECT id FROM collection WHERE scope = ?)`,
      ).run(scope)
    }
    for (const table of ['collection', 'single', 'forgotten']) {
      db.prepare(`DELETE FROM ${table} WHERE scope = ?`).run(scope)
    }
  }
}
