import type { DatabaseSync } from 'node:sqlite'
import type { ApiObject } from '../../../api/kube/object.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { resourceVersion } from '../../../api/kube/resource-version.ts'
import type { ObjectName } from './object-row.ts'
import type { CollectionAddress } from './address.ts'
import { prepare } from './statements.ts'

/**
 * Whether an object may leave a collection without being deleted. Names and namespaces do not
 * change.
 */
export const isSelective = ({ labelSelector, fieldSelector }: CollectionAddress): boolean =>
  labelSelector !== '' || !/^(metadata\.name(space)?=[^,]*(,|$))*$/.test(fieldSelector)

/**
 * The writer's view of objects of which collections are not to be believed: a list stays what the
 * cloud gave at its version, though something later has contradicted it. Such an object is answered
 * from the record of its own, if it has one. Nothing is noted of what no collection holds, unless a
 * cluster that was restored has it again.
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

  /** The cloud said that there is no such object: no state of it holds. */
  add(scope: number, named: ObjectName): void {
    if (this.#isHeld(scope, named)) this.#sql.set.run(scope, named.namespace, named.name, '')
    else this.#recall(scope, named)
  }

  /**
   * The cloud has an older state of it than collections hold, or has it though they say that there
   * is none.
   */
  restored(scope: number, { namespace, name }: ObjectName): void {
    this.#sql.set.run(scope, namespace, name, '')
  }

  /** It has a record of its own from now on, which alone counts where collections do not. */
  recorded(scope: number, object: ApiObject): void {
    if (this.#find(scope, object) !== '') this.confirmed(scope, object)
  }

  /**
   * A selector showed the object no longer: it is gone, or only does not match any more. Either way
   * what other collections hold of it from before that, at versions older than `below`, is not its
   * state.
   */
  unselected(scope: number, named: ObjectName, below: string): void {
    if (resourceVersion(below) === undefined || !this.#isHeld(scope, named)) return
    const known = this.#find(scope, named)
    if (known !== undefined && !isNewer(below, known)) return
    this.#sql.set.run(scope, named.namespace, named.name, below)
  }

  /** The cloud has told it again, unless that is older than what is known to be out of date. */
  confirmed(scope: number, object: ApiObject): void {
    const below = this.#find(scope, object)
    if (below === undefined || isNewer(below, object.resourceVersion)) return
    this.#recall(scope, object)
  }

  /**
   * The same for all that a list at `version` brought to a collection, or held already, and for
   * what has a record of its own that the list lacks.
   */
  listed(scope: number, collection: number, version: string): void {
    this.#sql.recallMembers.run(scope, collection, version)
    this.#sql.recallCovered.run(scope, collection)
  }

  /**
   * A restored cluster counts again from where it was: what was out of date before may be the
   * truth.
   */
  versionsReset(scope: number): void {
    this.#sql.recallBelow.run(scope)
  }

  /** A collection has let go of it. */
  released(scope: number, named: ObjectName): void {
    if (this.#find(scope, named) === undefined) return
    if (!this.#isHeld(scope, named)) this.#recall(scope, named)
  }

  #isHeld(scope: number, { namespace, name }: ObjectName): boolean {
    return this.#sql.held.get(scope, namespace, name) !== undefined
  }

  /** '' where no state holds; otherwise those below this version do not. */
  #find(scope: number, { namespace, name }: ObjectName): string | undefined {
    const row = this.#sql.find.get(scope, namespace, name)
    return row && String(row[0])
  }

  #recall(scope: number, { namespace, name }: ObjectName): void {
    this.#sql.recall.run(scope, namespace, name)
  }
}
