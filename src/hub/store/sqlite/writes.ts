import { crc32 } from 'node:zlib'
import type { DatabaseSync } from 'node:sqlite'
import { Events } from './events.ts'
import { Eviction } from './eviction.ts'
import type { Step } from './eviction-step.ts'
import { isChange, type DamagedIn } from './held.ts'
import { IdleAudiences } from './idle-audiences.ts'
import { Lists } from './lists.ts'
import type { CollectionAddress } from './address.ts'
import {
  unpack,
  type Apply,
  type Displaced,
  type Evict,
  type Forget,
  type Operation,
  type Put,
  type PutDocument,
  type Quarantine,
} from './messages.ts'
import type { Objects } from './objects.ts'
import { Quotas, written } from './quotas.ts'
import { prepare, type Statement } from './statements.ts'
import { tablesOf, type Tables } from './tables.ts'
import { mayFollow } from './versions.ts'

/**
 * Carries out operations, each within a transaction that others may share; throws what SQLite
 * throws.
 */
export class Writes {
  readonly #tables: Tables
  readonly #lists: Lists
  readonly #events: Events
  readonly #idle: IdleAudiences
  readonly #eviction: Eviction
  readonly #quotas: Quotas
  readonly #setDocument: Statement

  constructor(db: DatabaseSync, objects: Objects, maxBytes: number) {
    this.#tables = tablesOf(db, objects)
    this.#lists = new Lists(this.#tables)
    this.#events = new Events(this.#tables)
    this.#idle = new IdleAudiences(db, objects, this.#tables.rings)
    this.#quotas = new Quotas(db, maxBytes)
    this.#eviction = new Eviction(db, objects, this.#tables.rings, this.#quotas, maxBytes)
    this.#setDocument = prepare(
      db,
      `INSERT INTO document (identity, url, accept, content_type, checksum, body, confirmed_at)
       VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET content_type = excluded.content_type, checksum = excluded.checksum,
         body = excluded.body, confirmed_at = excluded.confirmed_at`,
    )
  }

  /** The transaction that ran did nothing. */
  rolledBack(): void {
    this.#tables.rings.forget()
    this.#quotas.rolledBack()
    this.#eviction.rolledBack()
  }

  get isNearFull(): boolean {
    return this.#eviction.isNear
  }

  /**
   * Identities that have more than their quota, of those that were written for since this was last
   * called.
   */
  beyondQuota(): string[] {
    return this.#quotas.beyond()
  }

  evict({ of, needed }: Evict): Step {
    return of === undefined ? this.#eviction.step(needed) : this.#eviction.stepOf(of)
  }

  carryOut(operation: Exclude<Operation, Evict>): Displaced | undefined {
    this.#quotas.wrote(operation)
    this.#eviction.wrote(written(operation))
    if (operation.kind === 'apply') return this.#events.apply(operation)
    this.#carryOut(operation)
    return undefined
  }

  #carryOut(operation: Exclude<Operation, Evict | Apply>): void {
    switch (operation.kind) {
      case 'stage':
        return this.#lists.stage(operation)
      case 'flip':
        return this.#lists.flip(operation)
      case 'discard':
        return this.#lists.discard(operation)
      case 'put':
        return this.#put(operation)
      case 'forget':
        return this.#forget(operation)
      case 'document':
        return this.#document(operation)
      case 'quarantine':
        return this.#quarantine(operation)
      case 'disown':
        return this.#disown(operation.collection)
      case 'age':
        return this.#idle.age(operation.day)
      case 'used':
        return this.#idle.used(operation.identity)
      case 'forget-audience':
        return this.#idle.forget(operation.identity)
      case 'trial':
        return this.#tables.objects.leave(operation.bytes)
      case 'asked':
        return this.#eviction.asked(operation.scope, operation.passing)
    }
  }

  #put({ scope: key, gvk, objects: packed, restored, confirmedAt }: Put): void {
    const { objects, singles, outOfDate } = this.#tables
    const scope = objects.scope(key)
    for (const object of unpack(packed)) {
      const single = singles.find(scope, object)
      if (restored || !single || isChange(object, single)) {
        singles.set(scope, gvk, objects.acquire(key, object), single, confirmedAt)
        if (restored) outOfDate.restored(scope, object)
        else outOfDate.recorded(scope, object)
      } else if (mayFollow(object.resourceVersion, single.resourceVersion)) {
        singles.confirm(scope, object, confirmedAt)
      }
    }
  }

  /**
   * Members stay, as the list is still what the cloud gave at its version; that they are not to be
   * answered by name is noted.
   */
  #forget({ scope: key, namespace, name }: Forget): void {
    const { objects, singles, outOfDate } = this.#tables
    const scope = objects.knownScope(key)
    if (scope === undefined) return
    singles.remove(scope, { namespace, name })
    outOfDate.gone(scope, { namespace, name })
  }

  #document({ key, contentType, body, confirmedAt }: PutDocument): void {
    this.#setDocument.run(...key, contentType, crc32(body), body, confirmedAt)
  }

  /** Nothing, if the row of the body has been left to another object meanwhile. */
  #quarantine({ scope: key, object }: Quarantine): void {
    const { objects, heads, rings, members, singles, staged } = this.#tables
    const scope = objects.knownScope(key)
    if (scope === undefined) return
    const { id, namespace, name, resourceVersion } = object
    const damaged: DamagedIn = [scope, namespace, name, resourceVersion, id]
    heads.setHoles(damaged)
    rings.quarantine(...damaged)
    const wasHeld = [members, singles, staged].map((table) => table.forgetDamaged(damaged))
    if (wasHeld.includes(true)) objects.remove(id)
  }

  #disown(address: CollectionAddress): void {
    const { heads, rings } = this.#tables
    const collection = heads.find(address)
    if (!collection) return
    heads.disown(collection.id)
    rings.restart(collection, collection.version)
  }
}
