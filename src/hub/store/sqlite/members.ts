import type { DatabaseSync } from 'node:sqlite'
import {
  rowColumns,
  objectRow,
  optionalObjectRow,
  type ObjectName,
  type BodyReference,
  type ObjectRow,
} from './object-row.ts'
import type { Objects } from './objects.ts'
import { prepare } from './statements.ts'

/**
 * The writer's access to the members of collections. A replaced or removed row releases its body.
 */
export class Members {
  readonly #objects: Objects
  readonly #sql

  constructor(db: DatabaseSync, objects: Objects) {
    this.#objects = objects
    this.#sql = {
      find: prepare(
        db,
        `SELECT ${rowColumns} FROM member WHERE collection = ? AND namespace = ? AND name = ?`,
      ),
      set: prepare(
        db,
        `INSERT INTO member (collection, ${rowColumns}) VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET body = excluded.body, uid = excluded.uid,
           version = excluded.version, size = excluded.size`,
      ),
      remove: prepare(db, 'DELETE FROM member WHERE collection = ? AND namespace = ? AND name = ?'),
      displaced: prepare(
        db,
        `SELECT member.body, member.namespace, member.name, member.uid, member.version, member.size
         FROM staged CROSS JOIN member ON member.collection = ?3
           AND member.namespace = staged.namespace AND member.name = staged.name
         WHERE staged.scope = ?1 AND staged.replacement = ?2 AND member.body <> staged.body`,
      ),
      join: prepare(
        db,
        `INSERT INTO member (collection, ${rowColumns})
         SELECT ?3, ${rowColumns} FROM staged
         WHERE scope = ?1 AND replacement = ?2 ORDER BY namespace, name
         ON CONFLICT DO UPDATE SET body = excluded.body, uid = excluded.uid,
           version = excluded.version, size = excluded.size
         WHERE body <> excluded.body`,
      ),
    }
  }

  find(collection: number, { namespace, name }: ObjectName): ObjectRow | undefined {
    return optionalObjectRow(this.#sql.find.get(collection, namespace, name))
  }

  /** Replaces `before`, the object's row in the collection. */
  set(scope: number, collection: number, held: ObjectRow, before: ObjectRow | undefined): void {
    const { id, namespace, name, uid, resourceVersion, size } = held
    if (before?.id === id) return
    this.#sql.set.run(collection, id, namespace, name, uid, resourceVersion, size)
    if (before) this.#objects.release(scope, before)
  }

  remove(scope: number, collection: number, member: BodyReference): void {
    this.#sql.remove.run(collection, member.namespace, member.name)
    this.#objects.release(scope, member)
  }

  /**
   * Makes the staged objects members in one statement, which is several times as fast as row by
   * row. Returns whether any member has changed.
   */
  join(scope: number, collection: number, replacement: number): boolean {
    const displaced = this.#sql.displaced.all(scope, replacement, collection).map(objectRow)
    const changed = this.#sql.join.run(scope, replacement, collection)
    for (const held of displaced) this.#objects.release(scope, held)
    return changed > 0
  }
}
