import type { DatabaseSync } from 'node:sqlite'
import type { GVK } from '../../../api/kube/gvk.ts'
import {
  rowColumns,
  optionalObjectRow,
  type ObjectName,
  type BodyReference,
  type ObjectRow,
} from './object-row.ts'
import type { Objects } from './objects.ts'
import { prepare } from './statements.ts'
import { mayFollow } from './versions.ts'

/**
 * The writer's access to records of single objects. A replaced or removed row releases its body.
 */
export class ObjectRecords {
  readonly #objects: Objects
  readonly #sql

  constructor(db: DatabaseSync, objects: Objects) {
    this.#objects = objects
    this.#sql = {
      find: prepare(
        db,
        `SELECT ${rowColumns} FROM single WHERE scope = ? AND namespace = ? AND name = ?`,
      ),
      set: prepare(
        db,
        `INSERT INTO single (scope, ${rowColumns}, kind_group, kind_version, kind, confirmed_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET body = excluded.body, uid = excluded.uid,
           version = excluded.version, size = excluded.size, kind_group = excluded.kind_group,
           kind_version = excluded.kind_version, kind = excluded.kind,
           confirmed_at = excluded.confirmed_at`,
      ),
      confirm: prepare(
        db,
        'UPDATE single SET confirmed_at = ? WHERE scope = ? AND namespace = ? AND name = ?',
      ),
      move: prepare(
        db,
        `UPDATE single SET body = ?, uid = ?, version = ?, size = ?, confirmed_at = ?
         WHERE scope = ? AND namespace = ? AND name = ?`,
      ),
      remove: prepare(db, 'DELETE FROM single WHERE scope = ? AND namespace = ? AND name = ?'),
    }
  }

  find(scope: number, { namespace, name }: ObjectName): ObjectRow | undefined {
    return optionalObjectRow(this.#sql.find.get(scope, namespace, name))
  }

  /** Replaces `before`, the object's record. */
  set(
    scope: number,
    gvk: GVK,
    held: ObjectRow,
    before: ObjectRow | undefined,
    confirmedAt: number,
  ): void {
    const { id, namespace, name, uid, resourceVersion, size } = held
    const { group, version, kind } = gvk
    this.#sql.set.run(
      scope,
      id,
      namespace,
      name,
      uid,
      resourceVersion,
      size,
      group,
      version,
      kind,
      confirmedAt,
    )
    if (before) this.#objects.release(scope, before)
  }

  /** An API server has sent the recorded state again. */
  confirm(scope: number, { namespace, name }: ObjectName, at: number): void {
    this.#sql.confirm.run(at, scope, namespace, name)
  }

  /** An event has a newer state than the record `before`; the kind stays. */
  move(scope: number, held: ObjectRow, before: ObjectRow, at: number): void {
    const { id, namespace, name, uid, resourceVersion, size } = held
    this.#sql.move.run(id, uid, resourceVersion, size, at, scope, namespace, name)
    this.#objects.release(scope, before)
  }

  /** Does nothing where the record is newer than `upTo`. */
  remove(scope: number, named: ObjectName, upTo?: string): void {
    const record = this.find(scope, named)
    if (!record || (upTo !== undefined && !mayFollow(upTo, record.resourceVersion))) return
    this.removeRow(scope, record)
  }

  /** Does nothing where the record is of `version` or newer. */
  removeOlder(scope: number, named: ObjectName, version: string): void {
    const record = this.find(scope, named)
    if (!record || record.resourceVersion === version) return
    if (mayFollow(version, record.resourceVersion)) this.removeRow(scope, record)
  }

  removeRow(scope: number, record: BodyReference): void {
    this.#sql.remove.run(scope, record.namespace, record.name)
    this.#objects.release(scope, record)
  }
}
