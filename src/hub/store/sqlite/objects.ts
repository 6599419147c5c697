import type { DatabaseSync } from 'node:sqlite'
import type { ApiObject } from '../../../api/kube/object.ts'
import type { BodyReference, ObjectRow } from './object-row.ts'
import { fromBody, roomFor, toBody } from './body.ts'
import { whereScope, type ScopeKey } from './address.ts'
import { EventBodies } from './event-bodies.ts'
import { isSealed, type Seal } from './seal.ts'
import { secureDelete } from './secure-delete.ts'
import { FreeRows, type FreeRow } from './free-rows.ts'
import { prepare } from './statements.ts'

/** A row of `body` without references. */
interface UnreferencedBody extends FreeRow {
  readonly isSealed: boolean
}

/**
 * The writer's access to scopes and bodies. A body is stored once for all rows of its scope that
 * refer to it. An unreferenced row is used again as soon as no list that is being read can need it.
 * The row of a sealed body is overwritten instead: the key that opens it may be on the same disk.
 */
export class Objects {
  readonly #db: DatabaseSync
  readonly #seal: Seal
  readonly #scopes = new Map<string, number>()
  /** By scope id. */
  readonly #sealed = new Map<number, boolean>()
  /**
   * Bodies that committed groups have left unreferenced, in order of the group. `#left` has those
   * of the current transaction, and `#erased` those that it deletes.
   */
  #unreferenced: (UnreferencedBody & { readonly group: number })[] = []
  #left: UnreferencedBody[] = []
  #erased: (UnreferencedBody & { readonly group: number })[] = []
  readonly #freeRows = new FreeRows()
  readonly #eventBodies: EventBodies
  #nextId: number
  readonly #sql

  constructor(db: DatabaseSync, seal: Seal) {
    this.#db = db
    this.#seal = seal
    this.#eventBodies = new EventBodies(db)
    this.#nextId = Number(prepare(db, 'SELECT coalesce(max(id), 0) + 1 FROM body').get()?.[0])
    // Collections of single names are many where a kubelet watches object by object: they are
    // skipped.
    const anyoneWith = (condition: (table: string) => string): string => `
      SELECT member.body FROM collection JOIN member ON member.collection = collection.id
      WHERE collection.scope = ?1 AND collection.namespace IN ('', ?2)
        AND (field_selector NOT GLOB 'metadata.name=*' OR field_selector = 'metadata.name=' || ?3
          OR field_selector GLOB '*,*')
        AND member.namespace = ?2 AND member.name = ?3 AND ${condition('member')}
      UNION ALL SELECT body FROM single
      WHERE scope = ?1 AND namespace = ?2 AND name = ?3 AND ${condition('single')}
      UNION ALL SELECT body FROM staged
      WHERE scope = ?1 AND namespace = ?2 AND name = ?3 AND ${condition('staged')}
      LIMIT 1`
    this.#sql = {
      addScope: prepare(
        db,
        `INSERT INTO scope (identity, form, api_group, api_version, resource) VALUES (?, ?, ?, ?, ?)
         RETURNING id`,
      ),
      findScope: prepare(db, `SELECT id FROM scope WHERE ${whereScope}`),
      scopeOf: prepare(
        db,
        'SELECT identity, form, api_group, api_version, resource FROM scope WHERE id = ?',
      ),
      sameVersion: prepare(
        db,
        anyoneWith((table) => `${table}.version = ?4 AND ${table}.uid = ?5 AND ${table}.size = ?6`),
      ),
      sameBody: prepare(
        db,
        anyoneWith((table) => `${table}.body = ?4`),
      ),
      setBody: prepare(
        db,
        `INSERT INTO body (id, checksum, bytes) VALUES (?, ?, ?)
         ON CONFLICT DO UPDATE SET checksum = excluded.checksum, bytes = excluded.bytes`,
      ),
      removeBody: prepare(db, 'DELETE FROM body WHERE id = ?'),
      read: prepare(db, 'SELECT checksum, bytes FROM body WHERE id = ?'),
    }
  }

  scope(key: ScopeKey): number {
    const known = this.knownScope(key)
    if (known !== undefined) return known
    const id = Number(this.#sql.addScope.get(...key)?.[0])
    this.#scopes.set(JSON.stringify(key), id)
    return id
  }

  /** `undefined`: nothing was ever stored in it. */
  knownScope(key: ScopeKey): number | undefined {
    const text = JSON.stringify(key)
    const known = this.#scopes.get(text)
    if (known !== undefined) return known
    const row = this.#sql.findScope.get(...key)
    if (!row) return undefined
    this.#scopes.set(text, Number(row[0]))
    return Number(row[0])
  }

  /** Scopes were deleted. */
  forgetScopes(): void {
    this.#scopes.clear()
    this.#sealed.clear()
  }

  /**
   * Finds the body stored for another row, or stores it: API servers of two releases may encode one
   * version of an object differently. The caller must refer to it before the transaction ends.
   */
  acquire(key: ScopeKey, object: ApiObject): ObjectRow {
    const { namespace, name, uid, resourceVersion } = object
    const size = object.bytes.byteLength
    const found =
      resourceVersion === ''
        ? undefined
        : this.#sql.sameVersion.get(this.scope(key), namespace, name, resourceVersion, uid, size)
    if (!found) return this.acquireOwn(key, object)
    return { id: Number(found[0]), namespace, name, uid, resourceVersion, size }
  }

  /**
   * Stores the body for one row alone, as `acquire`. The last state that a collection had of an
   * object, in an event, needs that: an object that leaves a selection has other bytes at the same
   * version.
   */
  acquireOwn(key: ScopeKey, object: ApiObject): ObjectRow {
    const { namespace, name, uid, resourceVersion } = object
    const size = object.bytes.byteLength
    const id = this.#freeRows.take(roomFor(size)) ?? this.#nextId++
    const { checksum, bytes } = toBody(this.#seal, key, object)
    this.#sql.setBody.run(id, checksum, bytes)
    return { id, namespace, name, uid, resourceVersion, size }
  }

  /** Writes an unreferenced body. */
  leave(bytes: number): void {
    const id = this.#nextId++
    this.#sql.setBody.run(id, 0, new Uint8Array(bytes))
    this.#left.push({ id, room: bytes, isSealed: false })
  }

  /**
   * Must be called when a row does not refer to the body any more. After the last one the body is
   * left to `sweep`.
   */
  release(scope: number, { id, namespace, name, size }: BodyReference): void {
    if (this.#eventBodies.has(id)) return
    if (this.#sql.sameBody.get(scope, namespace, name, id)) return
    this.#left.push({ id, room: roomFor(size), isSealed: this.#isSealed(scope) })
  }

  /** A deleted scope counts as sealed. */
  #isSealed(scope: number): boolean {
    const known = this.#sealed.get(scope)
    if (known !== undefined) return known
    const row = this.#sql.scopeOf.get(scope)
    const sealed = !row || isSealed(row.map(String) as unknown as ScopeKey)
    this.#sealed.set(scope, sealed)
    return sealed
  }

  /** Adds the reference of an event. */
  addEvent({ id }: ObjectRow): void {
    this.#eventBodies.add(id)
  }

  /** Removes the reference of an event. */
  releaseEvent(scope: number, held: BodyReference): void {
    if (this.#eventBodies.remove(held.id)) this.release(scope, held)
  }

  /** `undefined` when it is damaged. */
  read(key: ScopeKey, held: ObjectRow): ApiObject | undefined {
    const row = this.#sql.read.get(held.id)
    if (!(row?.[1] instanceof Uint8Array)) return undefined
    const body = { checksum: Number(row[0]), bytes: row[1] }
    const bytes = fromBody(this.#seal, key, held, body)
    const { namespace, name, uid, resourceVersion } = held
    return bytes && { namespace, name, uid, resourceVersion, bytes }
  }

  remove(id: number): void {
    secureDelete(this.#db, () => this.#sql.removeBody.run(id))
  }

  /**
   * Frees the bodies that groups up to `group` have left unreferenced: surplus and sealed rows are
   * deleted. Within a transaction.
   */
  sweep(group: number): void {
    const swept = this.#unreferenced.findIndex((left) => left.group > group)
    const ended = this.#unreferenced.splice(0, swept < 0 ? Infinity : swept)
    for (const left of ended) {
      if (left.isSealed) this.#erased.push(left)
      else this.#freeRows.add(left)
    }
    if (this.#erased.length > 0) {
      secureDelete(this.#db, () => {
        for (const { id } of this.#erased) this.#sql.removeBody.run(id)
      })
    }
    for (const id of this.#freeRows.takeSurplus()) this.#sql.removeBody.run(id)
  }

  /** Deletes at most this many free rows; returns how many. Within a transaction. */
  giveBack(rows: number): number {
    let given = 0
    for (const id of this.#freeRows.takeSurplus(rows)) {
      this.#sql.removeBody.run(id)
      given += 1
    }
    return given
  }

  /** Bytes of unreferenced rows, which are deleted or used again. */
  get keptBytes(): number {
    const waiting = [...this.#unreferenced, ...this.#left]
    return this.#freeRows.bytes + waiting.reduce((sum, { room }) => sum + room, 0)
  }

  /** Deletes all free rows. Within a transaction. */
  shrink(): void {
    for (const id of this.#freeRows.takeSurplus(Infinity)) this.#sql.removeBody.run(id)
  }

  /** The transaction of `group` is committed. */
  committed(group: number): void {
    this.#freeRows.committed()
    this.#eventBodies.committed()
    for (const left of this.#left) this.#unreferenced.push({ group, ...left })
    this.#left = []
    this.#erased = []
  }

  rolledBack(): void {
    this.#freeRows.rolledBack()
    this.#eventBodies.rolledBack()
    this.#left = []
    this.#unreferenced.unshift(...this.#erased.splice(0))
    this.#scopes.clear()
    this.#sealed.clear()
  }

  get unreferenced(): number {
    return this.#unreferenced.length
  }
}
