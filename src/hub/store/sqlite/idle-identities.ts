import type { DatabaseSync } from 'node:sqlite'
import { nodeIdentity } from '../../../api/request/identity.ts'
import { bodyReference } from './object-row.ts'
import { prepare } from './statements.ts'
import type { ForgetIdentity } from './messages.ts'
import type { Tables } from './tables.ts'

/** Days of running after which the data of a caller that did not come back is deleted. */
export const maxIdleDays = 30

/** Before the first release: a clock that shows less was never set. */
const firstDay = Math.floor(Date.UTC(2026, 0, 1) / (24 * 60 * 60_000))

/** Rows deleted in one step, which other writers wait for. */
const stepRows = 500
/** Documents are few and large. */
const stepDocuments = 10

/**
 * Deletes the data of identities that are not used any more: opaque tokens are replaced by new
 * ones, and service accounts are removed with their pods; the node's own identity stays. Counts
 * days on which the hub ran: the clock of a node without a battery jumps, and a node that was
 * stored for a year must have all its data.
 */
export class IdleIdentities {
  readonly #tables: Tables
  readonly #sql

  constructor(db: DatabaseSync, tables: Tables) {
    this.#tables = tables
    const ofIdentity = 'scope IN (SELECT id FROM scope WHERE identity = ?)'
    this.#sql = {
      newcomers: prepare(
        db,
        `INSERT INTO audience (identity, idle_days)
         SELECT identity, 0 FROM scope WHERE identity <> '${nodeIdentity}'
         UNION SELECT identity, 0 FROM document WHERE identity <> '${nodeIdentity}'
         ON CONFLICT DO NOTHING`,
      ),
      day: prepare(db, 'SELECT max(day) FROM aged'),
      setDay: prepare(
        db,
        'INSERT INTO aged (id, day) VALUES (1, ?) ON CONFLICT DO UPDATE SET day = excluded.day',
      ),
      countDay: prepare(db, 'UPDATE audience SET idle_days = idle_days + 1'),
      used: prepare(db, 'UPDATE audience SET idle_days = 0 WHERE identity = ? AND idle_days > 0'),
      idle: prepare(db, 'SELECT 1 FROM audience WHERE identity = ? AND idle_days >= ?'),
      invalidate: prepare(db, `UPDATE collection SET whole = 0 WHERE whole = 1 AND ${ofIdentity}`),
      logged: prepare(
        db,
        `SELECT id, scope, version FROM collection
         WHERE ${ofIdentity} AND ring_next > ring_first LIMIT 1`,
      ),
      members: prepare(
        db,
        `SELECT collection.scope, collection, member.namespace, name, body, size
         FROM collection JOIN member ON member.collection = collection.id
         WHERE collection.${ofIdentity} LIMIT ${stepRows}`,
      ),
      records: prepare(
        db,
        `SELECT scope, namespace, name, body, size FROM single WHERE ${ofIdentity} LIMIT ${stepRows}`,
      ),
      documents: prepare(
        db,
        `DELETE FROM document WHERE rowid IN
           (SELECT rowid FROM document WHERE identity = ? LIMIT ${stepDocuments})`,
      ),
      rest: [
        `DELETE FROM forgotten WHERE ${ofIdentity}`,
        `DELETE FROM collection WHERE ${ofIdentity}`,
        'DELETE FROM scope WHERE identity = ?',
        'DELETE FROM audience WHERE identity = ?',
      ].map((sql) => prepare(db, sql)),
    }
  }

  /**
   * `day` has begun. Each day counts once, and none before the last counted one. If a fast clock
   * counted a day in the future, counting goes on from the day on which the clock was corrected.
   */
  countDay(day: number): void {
    const last = this.#sql.day.get()?.[0]
    const counts = typeof last !== 'number' || day > last
    if (counts || day >= firstDay) this.#sql.setDay.run(day)
    if (counts) this.#sql.countDay.run()
    this.#sql.newcomers.run()
  }

  used(identity: string): void {
    this.#sql.used.run(identity)
  }

  forget({ identity, used }: ForgetIdentity): void {
    if (!used && !this.#sql.idle.get(identity, maxIdleDays)) return
    // A partly deleted collection must not be served.
    this.#sql.invalidate.run(identity)
    if (this.#forgetEvents(identity)) return
    if (this.#forgetMembers(identity) || this.#forgetRecords(identity)) return
    if (this.#sql.documents.run(identity) > 0) return
    for (const statement of this.#sql.rest) statement.run(identity)
    this.#tables.objects.forgetScopes()
    this.#tables.eventLogs.forget()
  }

  #forgetEvents(identity: string): boolean {
    const [logged] = this.#sql.logged.all(identity)
    if (logged === undefined) return false
    const [id, scope, version] = logged
    this.#tables.eventLogs.restart({ id: Number(id), scope: Number(scope) }, String(version))
    return true
  }

  #forgetMembers(identity: string): boolean {
    const members = this.#sql.members.all(identity)
    for (const [scope, collection, ...row] of members) {
      this.#tables.members.remove(Number(scope), Number(collection), bodyReference(row))
    }
    return members.length > 0
  }

  #forgetRecords(identity: string): boolean {
    const records = this.#sql.records.all(identity)
    for (const [scope, ...row] of records) {
      this.#tables.records.removeRow(Number(scope), bodyReference(row))
    }
    return records.length > 0
  }
}
