import type { DatabaseSync } from 'node:sqlite'
import type { ApiObject } from '../../../api/kube/object.ts'
import { rowColumns, objectRow, optionalObjectRow, type ObjectName } from './object-row.ts'
import type { ScopeKey } from './address.ts'
import type { Objects } from './objects.ts'
import { prepare } from './statements.ts'

/**
 * The writer's access to staged objects. Their bodies pass to members without being written again.
 */
export class Staged {
  readonly #objects: Objects
  readonly #sql

  constructor(db: DatabaseSync, objects: Objects) {
    this.#objects = objects
    this.#sql = {
      find: prepare(
        db,
        `SELECT ${rowColumns} FROM staged
         WHERE scope = ? AND namespace = ? AND name = ? AND replacement = ?`,
      ),
      set: prepare(
        db,
        `INSERT INTO staged (scope, replacement, ${rowColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET body = excluded.body, uid = excluded.uid,
           version = excluded.version, size = excluded.size`,
      ),
      drop: prepare(
        db,
        `DELETE FROM staged WHERE scope = ? AND namespace = ? AND name = ? AND replacement = ?
         RETURNING ${rowColumns}`,
      ),
      of: prepare(
        db,
        `SELECT ${rowColumns} FROM staged
         WHERE scope = ? AND replacement = ? ORDER BY namespace, name`,
      ),
      clear: prepare(db, 'DELETE FROM staged WHERE scope = ? AND replacement = ?'),
    }
  }

  /** Replaces an object staged before under this name. */
  add(key: ScopeKey, replacement: number, object: ApiObject): void {
    const scope = this.#objects.scope(key)
    const { namespace, name } = object
    const before = optionalObjectRow(this.#sql.find.get(scope, namespace, name, replacement))
    const { id, uid, resourceVersion, size } = this.#objects.acquire(key, object)
    this.#sql.set.run(scope, replacement, id, namespace, name, uid, resourceVersion, size)
    if (before && before.id !== id) this.#objects.release(scope, before)
  }

  /** Removes a staged object. */
  drop(scope: number, replacement: number, { namespace, name }: ObjectName): void {
    for (const row of this.#sql.drop.all(scope, namespace, name, replacement)) {
      this.#objects.release(scope, objectRow(row))
    }
  }

  /** The list was given up. */
  discard(scope: number, replacement: number): void {
    const staged = this.#sql.of.all(scope, replacement).map(objectRow)
    this.joined(scope, replacement)
    for (const held of staged) this.#objects.release(scope, held)
  }

  /** All staged objects have become members. */
  joined(scope: number, replacement: number): void {
    this.#sql.clear.run(scope, replacement)
  }
}
