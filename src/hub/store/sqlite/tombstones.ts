import type { DatabaseSync } from 'node:sqlite'
import type { ApiObject } from '../../../api/kube/object.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { resourceVersion } from '../../../api/kube/resource-version.ts'
import type { ObjectName } from './object-row.ts'
import { prepare } from './statements.ts'

/**
 * Objects whose states in collections are out of date. A list stays as an API server sent it at its
 * version, though a later answer contradicts it; such an object is answered from its record only,
 * if it has one. There are tombstones only for objects that a collection holds, and for those of a
 * restored cluster.
 */
export class Tombstones {
  readonly #sql

  constructor(db: DatabaseSync) {
    this.#sql = {
      held: prepare(
        db,
        `SELECT 1 FROM collection JOIN member ON member.collection = collection.id
         WHERE collection.scope = ?1 AND collection.namespace IN ('', ?2)
           AND member.namespace = ?2 AND member.name = ?3 LIMIT 1`,
      ),
      find: prepare(
        db,
        'SELECT below FROM forgotten WHERE scope = ? AND namespace = ? AND name = ?',
      ),
      set: prepare(
        db,
        `INSERT INTO forgotten (scope, namespace, name, below) VALUES (?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET below = excluded.below`,
      ),
      recall: prepare(db, 'DELETE FROM forgotten WHERE scope = ? AND namespace = ? AND name = ?'),
      recallBelow: prepare(db, "DELETE FROM forgotten WHERE scope = ? AND below <> ''"),
      recallMembers: prepare(
        db,
        `DELETE FROM forgotten WHERE scope = ?1
           AND (below = '' OR CAST(below AS INTEGER) <= CAST(?3 AS INTEGER))
           AND EXISTS (
             SELECT 1 FROM member WHERE collection = ?2
               AND member.namespace = forgotten.namespace AND member.name = forgotten.name)`,
      ),
      recallCovered: prepare(
        db,
        `DELETE FROM forgotten WHERE scope = ?1 AND below = ''
           AND EXISTS (
             SELECT 1 FROM single WHERE single.scope = ?1
               AND single.namespace = forgotten.namespace AND single.name = forgotten.name)
           AND EXISTS (
             SELECT 1 FROM collection
             WHERE id = ?2 AND collection.namespace IN ('', forgotten.namespace)
               AND label_selector = ''
               AND field_selector IN ('', 'metadata.name=' || forgotten.name))`,
      ),
    }
  }

  /** An API server has answered that the object does not exist: no stored state is valid. */
  add(scope: number, named: ObjectName): void {
    if (this.#isHeld(scope, named)) this.#sql.set.run(scope, named.namespace, named.name, '')
    else this.#recall(scope, named)
  }

  /**
   * After a restore: the API server has an older state than collections, or has an object that they
   * lack.
   */
  restored(scope: number, { namespace, name }: ObjectName): void {
    this.#sql.set.run(scope, namespace, name, '')
  }

  /** The object has a new record, which counts where collections do not. */
  recorded(scope: number, object: ApiObject): void {
    if (this.#find(scope, object) !== '') this.confirmed(scope, object)
  }

  /**
   * An object has left a collection with a selector: it is deleted, or only does not match any
   * more. States in other collections older than `below` are out of date.
   */
  unselected(scope: number, named: ObjectName, below: string): void {
    if (resourceVersion(below) === undefined || !this.#isHeld(scope, named)) return
    const known = this.#find(scope, named)
    if (known !== undefined && !isNewer(below, known)) return
    this.#sql.set.run(scope, named.namespace, named.name, below)
  }

  /**
   * An API server has sent the object again, which ends a tombstone unless the state is older than
   * that.
   */
  confirmed(scope: number, object: ApiObject): void {
    const below = this.#find(scope, object)
    if (below === undefined || isNewer(below, object.resourceVersion)) return
    this.#recall(scope, object)
  }

  /**
   * Ends the tombstones of all members of a list at `version`, and of objects that have a record
   * and that the list lacks.
   */
  listed(scope: number, collection: number, version: string): void {
    this.#sql.recallMembers.run(scope, collection, version)
    this.#sql.recallCovered.run(scope, collection)
  }

  /**
   * A restored cluster counts versions again from an older one: states that were out of date may be
   * valid.
   */
  versionsReset(scope: number): void {
    this.#sql.recallBelow.run(scope)
  }

  /** A collection does not hold the object any more. */
  released(scope: number, named: ObjectName): void {
    if (this.#find(scope, named) === undefined) return
    if (!this.#isHeld(scope, named)) this.#recall(scope, named)
  }

  #isHeld(scope: number, { namespace, name }: ObjectName): boolean {
    return this.#sql.held.get(scope, namespace, name) !== undefined
  }

  /** '': no state is valid; else states before this version are not. */
  #find(scope: number, { namespace, name }: ObjectName): string | undefined {
    const row = this.#sql.find.get(scope, namespace, name)
    return row && String(row[0])
  }

  #recall(scope: number, { namespace, name }: ObjectName): void {
    this.#sql.recall.run(scope, namespace, name)
  }
}
