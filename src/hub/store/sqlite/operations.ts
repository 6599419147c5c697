import { crc32 } from 'node:zlib'
import type { DatabaseSync } from 'node:sqlite'
import { EventOperations } from './event-operations.ts'
import { Eviction } from './eviction.ts'
import { isChange, isDamaged, type DamagedParameters } from './object-row.ts'
import { IdleIdentities } from './idle-identities.ts'
import { ListOperations } from './list-operations.ts'
import type { CollectionAddress } from './address.ts'
import {
  unpack,
  type Apply,
  type Displaced,
  type Evict,
  type EvictionStep,
  type Forget,
  type Operation,
  type Put,
  type PutDocument,
  type Quarantine,
} from './messages.ts'
import type { Objects } from './objects.ts'
import { growthOf, Quotas, writeSize } from './quotas.ts'
import { prepare, type Statement } from './statements.ts'
import { tablesOf, type Tables } from './tables.ts'
import { mayFollow } from './versions.ts'

/** Carries out operations within the caller's transaction. Throws SQLite's errors. */
export class Operations {
  readonly #tables: Tables
  readonly #lists: ListOperations
  readonly #events: EventOperations
  readonly #idle: IdleIdentities
  readonly #eviction: Eviction
  readonly #quotas: Quotas
  readonly #setDocument: Statement
  /** In each table that refers to bodies. */
  readonly #removeDamaged: readonly Statement[]

  constructor(db: DatabaseSync, objects: Objects, maxBytes: number) {
    this.#tables = tablesOf(db, objects)
    this.#lists = new ListOperations(this.#tables)
    this.#events = new EventOperations(this.#tables)
    this.#idle = new IdleIdentities(db, this.#tables)
    this.#quotas = new Quotas(db, maxBytes)
    this.#eviction = new Eviction(db, this.#tables, this.#quotas, maxBytes)
    this.#setDocument = prepare(
      db,
      `INSERT INTO document (identity, url, accept, content_type, checksum, body, confirmed_at)
       VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET content_type = excluded.content_type, checksum = excluded.checksum,
         body = excluded.body, confirmed_at = excluded.confirmed_at`,
    )
    this.#removeDamaged = [
      'member WHERE collection IN (SELECT id FROM collection WHERE scope = ?1)',
      'single WHERE scope = ?1',
      'staged WHERE scope = ?1',
    ].map((rows) => prepare(db, `DELETE FROM ${rows} AND ${isDamaged}`))
  }

  /** The transaction was rolled back. */
  rolledBack(): void {
    this.#tables.eventLogs.forget()
    this.#quotas.rolledBack()
    this.#eviction.rolledBack()
  }

  get isNearFull(): boolean {
    return this.#eviction.isNear
  }

  /** The identities beyond their quota, of those written for since the last call. */
  beyondQuota(): string[] {
    return this.#quotas.exceeded()
  }

  evict({ of, referenced }: Evict): EvictionStep {
    return of === undefined ? this.#eviction.step(referenced) : this.#eviction.stepOf(of)
  }

  carryOut(operation: Exclude<Operation, Evict>): Displaced | undefined {
    this.#quotas.wrote(operation)
    this.#eviction.wrote(writeSize(operation), growthOf(operation))
    if (operation.kind === 'apply') return this.#events.apply(operation)
    this.#carryOut(operation)
    return undefined
  }

  #carryOut(operation: Exclude<Operation, Evict | Apply>): void {
    switch (operation.kind) {
      case 'stage':
        return this.#lists.stage(operation)
      case 'commit-list':
        return this.#lists.commit(operation)
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
      case 'invalidate':
        return this.#invalidate(operation.collection)
      case 'count-day':
        return this.#idle.countDay(operation.day)
      case 'mark-used':
        return this.#idle.used(operation.identity)
      case 'forget-identity':
        return this.#idle.forget(operation)
      case 'trial':
        return this.#tables.objects.leave(operation.bytes)
      case 'mark-scope':
        return this.#eviction.markScope(operation.scope, operation.evictFirst)
    }
  }

  #put({ scope: key, gvk, objects: packed, restored, confirmedAt }: Put): void {
    const { objects, records, tombstones } = this.#tables
    const scope = objects.scope(key)
    for (const object of unpack(packed)) {
      const record = records.find(scope, object)
      if (restored || !record || isChange(object, record)) {
        records.set(scope, gvk, objects.acquire(key, object), record, confirmedAt)
        if (restored) tombstones.restored(scope, object)
        else tombstones.recorded(scope, object)
      } else if (mayFollow(object.resourceVersion, record.resourceVersion)) {
        records.confirm(scope, object, confirmedAt)
      }
    }
  }

  /**
   * Members stay: the list is still what an API server sent at its version. A tombstone keeps them
   * from being found by name.
   */
  #forget({ scope: key, namespace, name, below }: Forget): void {
    const { objects, records, tombstones } = this.#tables
    const scope = objects.knownScope(key)
    if (scope === undefined) return
    const named = { namespace, name }
    if (below === '') {
      records.remove(scope, named)
      tombstones.add(scope, named)
    } else {
      records.removeOlder(scope, named, below)
      tombstones.unselected(scope, named, below)
    }
  }

  #document({ key, mediaType, body, confirmedAt }: PutDocument): void {
    this.#setDocument.run(...key, mediaType, crc32(body), body, confirmedAt)
  }

  /** Does nothing where the row of the body belongs to another object by now. */
  #quarantine({ scope: key, object }: Quarantine): void {
    const { objects, collections, eventLogs } = this.#tables
    const scope = objects.knownScope(key)
    if (scope === undefined) return
    const { id, namespace, name, resourceVersion } = object
    const damaged: DamagedParameters = [scope, namespace, name, resourceVersion, id]
    collections.markDamaged(damaged)
    eventLogs.quarantine(...damaged)
    const removed = this.#removeDamaged.map((statement) => statement.run(...damaged))
    if (removed.some((rows) => rows > 0)) objects.remove(id)
  }

  #invalidate(address: CollectionAddress): void {
    const { collections, eventLogs } = this.#tables
    const collection = collections.find(address)
    if (!collection) return
    collections.invalidate(collection.id)
    eventLogs.restart(collection, collection.version)
  }
}
