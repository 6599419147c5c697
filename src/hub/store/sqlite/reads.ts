import { crc32 } from 'node:zlib'
import type { DatabaseSync } from 'node:sqlite'
import type { ObjectEvent } from '../../../api/codec/watch.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import {
  isInGap,
  isNewer,
  resourceVersion,
  type ResourceVersion,
} from '../../../api/kube/resource-version.ts'
import type { StoredDocument } from '../store.ts'
import { fromBody } from './body.ts'
import { isHeadWhole } from './head-checksum.ts'
import { maxIdleDays } from './idle-identities.ts'
import { whereScope, type CollectionAddress, type ScopeKey } from './address.ts'
import { BodyCache } from './body-cache.ts'
import { checksumOf, eventTypes, gapsIn } from './event-logs.ts'
import { isSealed, type Seal } from './seal.ts'
import { ObjectStatesReader, type ObjectStates } from './object-states.ts'
import { prepare, type Row } from './statements.ts'
import { objectRow, rowColumns, type ObjectRow } from './object-row.ts'
import { QueryCache } from './query-cache.ts'
import { isAtLeast } from './versions.ts'

export interface StoredHead {
  readonly id: number
  readonly gvk: GVK
  readonly version: string
  readonly extra: string
  readonly confirmedAt: number
  /** A damaged row is not whole. */
  readonly whole: boolean
  readonly isDamaged: boolean
  readonly hasDamage: boolean
}

/** A collection's row, and where it is. */
interface AddressedHead extends Pick<
  StoredHead,
  'id' | 'version' | 'confirmedAt' | 'whole' | 'hasDamage'
> {
  readonly address: CollectionAddress
}

/** A row of an event log, without bodies. */
export interface StoredEvent {
  readonly seq: number
  /** Whether its checksum matches. */
  readonly isWhole: boolean
  readonly type: ObjectEvent['type']
  readonly object: ObjectRow
  readonly previous: ObjectRow | undefined
  /** The bytes of both bodies. */
  readonly size: number
}

/** When a resource was last confirmed. */
export interface Confirmation {
  readonly resource: string
  /** When an API server last confirmed any collection of it, in milliseconds since the epoch. */
  readonly confirmedAt: number
}

const headColumns =
  'id, kind_group, kind_version, kind, version, extra, confirmed_at, whole, holes, checksum'

/** Synchronous reads through a connection that cannot write. Throws SQLite's errors. */
export class Reads {
  readonly #db: DatabaseSync
  readonly #seal: Seal
  readonly #states: ObjectStatesReader
  readonly #scopes = new Map<string, number>()
  readonly #queries: QueryCache
  readonly #bodies = new BodyCache()
  readonly #sql

  /** The connection is closed with this. */
  constructor(db: DatabaseSync, seal: Seal) {
    db.exec('PRAGMA cache_size = -2000')
    this.#db = db
    this.#seal = seal
    this.#states = new ObjectStatesReader(db)
    this.#queries = new QueryCache(db)
    this.#sql = {
      scope: prepare(db, `SELECT id FROM scope WHERE ${whereScope}`),
      passing: prepare(db, `SELECT passing FROM scope WHERE ${whereScope}`),
      head: prepare(
        db,
        `SELECT ${headColumns} FROM collection
         WHERE scope = ? AND namespace = ? AND label_selector = ? AND field_selector = ?`,
      ),
      collections: prepare(
        db,
        `SELECT namespace, label_selector, field_selector, version FROM collection
         WHERE scope = ? AND namespace IN ('', ?) AND whole = 1 AND holes = 0`,
      ),
      // A longer decimal number is larger.
      holdsFor: prepare(
        db,
        `SELECT 1 FROM scope WHERE identity BETWEEN ?1 AND ?2
         UNION ALL SELECT 1 FROM document WHERE identity BETWEEN ?1 AND ?2 LIMIT 1`,
      ),
      observed: prepare(
        db,
        `SELECT version FROM (
           SELECT single.version FROM scope JOIN single ON single.scope = scope.id
           WHERE identity = ?1 AND api_group = ?2 AND resource = ?3
           UNION ALL
           SELECT collection.version FROM scope JOIN collection ON collection.scope = scope.id
           WHERE identity = ?1 AND api_group = ?2 AND resource = ?3)
         WHERE version GLOB '[1-9]*' AND version NOT GLOB '*[^0-9]*'
         ORDER BY length(version) DESC, version DESC LIMIT 1`,
      ),
      contradicted: prepare(
        db,
        `SELECT 1 FROM forgotten JOIN member
           ON member.namespace = forgotten.namespace AND member.name = forgotten.name
         WHERE member.collection = ?1 AND forgotten.scope = ?2 AND below = '' LIMIT 1`,
      ),
      names: prepare(db, 'SELECT namespace, name FROM single WHERE scope = ?'),
      scopes: prepare(
        db,
        'SELECT identity, form FROM scope WHERE api_group = ? AND api_version = ? AND resource = ?',
      ),
      allCollections: prepare(
        db,
        `SELECT namespace, label_selector, field_selector, version FROM collection
         WHERE scope = ? AND whole = 1 AND holes = 0`,
      ),
      allNames: prepare(
        db,
        `SELECT namespace, name FROM single WHERE scope = ?1
         UNION
         SELECT member.namespace, name FROM collection JOIN member ON member.collection = collection.id
         WHERE scope = ?1 AND whole = 1`,
      ),
      members: prepare(
        db,
        `SELECT ${rowColumns} FROM member
         WHERE collection = ? ORDER BY namespace, name`,
      ),
      log: prepare(
        db,
        'SELECT ring_from, ring_gaps, ring_first, ring_next FROM collection WHERE id = ?',
      ),
      events: prepare(
        db,
        `SELECT ${rowColumns},
           previous_body, namespace, name, coalesce(previous_uid, uid), previous_version, previous_size,
           seq, type, checksum
         FROM told WHERE collection = ? ORDER BY seq`,
      ),
      bodies: prepare(
        db,
        `SELECT body.id, body.checksum, body.bytes FROM json_each(?) AS wanted
         JOIN body ON body.id = wanted.value`,
      ),
      body: prepare(db, 'SELECT id, checksum, bytes FROM body WHERE id = ?'),
      confirmations: prepare(
        db,
        `SELECT resource, max(confirmed_at) AS newest
         FROM collection JOIN scope ON scope.id = collection.scope
         WHERE whole = 1 GROUP BY resource ORDER BY newest`,
      ),
      heads: prepare(
        db,
        `SELECT collection.id, namespace, label_selector, field_selector, version, confirmed_at,
           whole, holes, checksum, identity, form, api_group, api_version, resource
         FROM collection JOIN scope ON scope.id = collection.scope
         ORDER BY confirmed_at DESC LIMIT ?`,
      ),
      collectionCount: prepare(db, 'SELECT count(*) FROM collection'),
      size: prepare(db, 'SELECT count(*), coalesce(sum(size), 0) FROM member WHERE collection = ?'),
      identities: prepare(db, 'SELECT identity FROM scope UNION SELECT identity FROM document'),
      idle: prepare(db, 'SELECT identity FROM audience WHERE idle_days >= ?'),
      documents: prepare(
        db,
        'SELECT url, accept, confirmed_at FROM document WHERE identity = ? ORDER BY url, accept LIMIT ?',
      ),
      document: prepare(
        db,
        'SELECT content_type, checksum, body, confirmed_at FROM document WHERE identity = ? AND url = ? AND accept = ?',
      ),
    }
  }

  close(): void {
    this.#db.close()
  }

  /** Makes all reads of `read` see the same state. */
  atOnce<T>(read: () => T): T {
    this.#db.exec('BEGIN')
    try {
      return read()
    } finally {
      this.#db.exec('COMMIT')
    }
  }

  /** A collection's row; not whole where its version is damaged. */
  head(address: CollectionAddress): StoredHead | undefined {
    const { scope, namespace, labelSelector, fieldSelector } = address
    const id = this.#scope(scope)
    const row =
      id === undefined ? undefined : this.#sql.head.get(id, namespace, labelSelector, fieldSelector)
    if (!row) return undefined
    const [collection, , , , version, extra, confirmedAt, whole, holes, checksum] = row
    const isDamaged = !isHeadWhole(checksum, address, String(version))
    return {
      id: Number(collection),
      gvk: gvkOf(row.slice(1)),
      version: String(version),
      extra: String(extra),
      confirmedAt: Number(confirmedAt),
      whole: whole === 1 && !isDamaged,
      isDamaged,
      hasDamage: holes === 1,
    }
  }

  /** As `ObjectStore` has it. */
  observedVersion(identity: string, group: string, resource: string): ResourceVersion | undefined {
    const [version] = this.#sql.observed.get(identity, group, resource) ?? []
    return version === undefined ? undefined : resourceVersion(String(version))
  }

  /** As `ObjectStore` has it. */
  holdsFor(prefix: string): boolean {
    return this.#sql.holdsFor.get(prefix, `${prefix}\u{10FFFF}`) !== undefined
  }

  /** As `ObjectStore` has it. */
  isContradicted(address: CollectionAddress): boolean {
    const head = this.head(address)
    const scope = this.#scope(address.scope)
    if (!head || scope === undefined) return false
    return this.#sql.contradicted.get(head.id, scope) !== undefined
  }

  /** The objects that have a record of their own. */
  names(scope: ScopeKey): NamedRow[] {
    const id = this.#scope(scope)
    return id === undefined ? [] : this.#sql.names.all(id).map(namedRow)
  }

  /** The objects that have a record of their own, or are in a collection. */
  allNames(scope: ScopeKey): NamedRow[] {
    const id = this.#scope(scope)
    return id === undefined ? [] : this.#sql.allNames.all(id).map(namedRow)
  }

  /** The scopes of a resource, of all identities. */
  scopes(group: string, version: string, resource: string): ScopeKey[] {
    return this.#sql.scopes
      .all(group, version, resource)
      .map(([identity, form]) => [String(identity), String(form), group, version, resource])
  }

  /**
   * The complete collections of `namespace` ('' for none) and of all namespaces; for `undefined`
   * those of every namespace.
   */
  collections(
    scope: ScopeKey,
    namespace: string | undefined,
  ): { readonly address: CollectionAddress; readonly version: string }[] {
    const id = this.#scope(scope)
    if (id === undefined) return []
    const { collections, allCollections } = this.#sql
    const rows = namespace === undefined ? allCollections.all(id) : collections.all(id, namespace)
    return rows.map(([of, labelSelector, fieldSelector, version]) => ({
      address: {
        scope,
        namespace: String(of),
        labelSelector: String(labelSelector),
        fieldSelector: String(fieldSelector),
      },
      version: String(version),
    }))
  }

  members(collection: number): readonly ObjectRow[] {
    return this.#queries.get(`members ${collection}`, () =>
      this.#sql.members.all(collection).map(objectRow),
    )
  }

  /**
   * The events after `since` of a collection at `version`; `undefined`: not all are stored;
   * 'damaged': the log is.
   */
  events(
    { id, version }: Pick<StoredHead, 'id' | 'version'>,
    since: string,
  ): readonly StoredEvent[] | 'damaged' | undefined {
    if (isAtLeast(since, version)) return []
    const [from, gaps, first, next] = this.#sql.log.get(id) ?? []
    if (!isAtLeast(since, String(from)) || !isNewer(version, since)) return undefined
    if (isInGap(since, gapsIn(gaps))) return undefined
    const events = this.#queries.get(`events ${id}`, () => this.#sql.events.all(id).map(toEvent))
    // A missing or changed event would be a gap.
    if (events.length !== Number(next) - Number(first)) return 'damaged'
    if (!events.every(({ isWhole }, at) => isWhole && events[at]?.seq === Number(first) + at)) {
      return 'damaged'
    }
    return events.filter(({ object }) => isNewer(object.resourceVersion, since))
  }

  /** `undefined`: nothing was ever stored in the scope. */
  objectStates(scope: ScopeKey, namespace: string, name: string): ObjectStates | undefined {
    const id = this.#scope(scope)
    if (id === undefined) return undefined
    return this.#queries.get(`states ${id} ${namespace}/${name}`, () =>
      this.#states.of(id, scope, namespace, name),
    )
  }

  /**
   * The objects in the given order, without damaged or missing ones, for which `damaged` is called.
   */
  bodies(
    scope: ScopeKey,
    wanted: readonly ObjectRow[],
    damaged: (stored: ObjectRow) => void,
  ): readonly ApiObject[] {
    const kept = isSealed(scope) ? undefined : this.#scope(scope)
    const known = wanted.map((each) =>
      kept === undefined ? undefined : this.#bodies.get(kept, each),
    )
    const rows = this.#bodyRows(wanted.filter((_, at) => !known[at]).map(({ id }) => id))
    return wanted.flatMap((stored, at) => {
      const { namespace, name, uid, resourceVersion } = stored
      const bytes = known[at] ?? this.#read(scope, stored, rows.get(stored.id))
      if (!bytes) {
        damaged(stored)
        return []
      }
      if (kept !== undefined && !known[at]) this.#bodies.set(kept, stored, bytes)
      return [{ namespace, name, uid, resourceVersion, bytes }]
    })
  }

  /** `undefined`: damaged or missing. */
  #read(scope: ScopeKey, stored: ObjectRow, row: Row | undefined): Uint8Array | undefined {
    // In a damaged row even the types may have changed.
    if (!(row?.[2] instanceof Uint8Array)) return undefined
    return fromBody(this.#seal, scope, stored, { checksum: Number(row[1]), bytes: row[2] })
  }

  document(key: readonly [string, string, string]): StoredDocument | 'damaged' | undefined {
    const row = this.#sql.document.get(...key)
    if (!row) return undefined
    const body = row[2]
    return body instanceof Uint8Array && crc32(body) === row[1]
      ? { mediaType: String(row[0]), body, confirmedAt: Number(row[3]) }
      : 'damaged'
  }

  /** When an API server last confirmed a collection of each resource, oldest first. */
  confirmations(): Confirmation[] {
    return this.#sql.confirmations
      .all()
      .map(([resource, at]) => ({ resource: String(resource), confirmedAt: Number(at) }))
  }

  /** The `most` collections that were confirmed last, also those that are not whole. */
  heads(most: number): AddressedHead[] {
    return this.#sql.heads.all(most).map((row) => {
      const [id, namespace, labelSelector, fieldSelector, version, confirmedAt, whole, holes] = row
      const [checksum, identity, form, group, apiVersion, resource] = row.slice(8)
      const address: CollectionAddress = {
        scope: [
          String(identity),
          String(form),
          String(group),
          String(apiVersion),
          String(resource),
        ],
        namespace: String(namespace),
        labelSelector: String(labelSelector),
        fieldSelector: String(fieldSelector),
      }
      return {
        id: Number(id),
        address,
        version: String(version),
        confirmedAt: Number(confirmedAt),
        whole: whole === 1 && isHeadWhole(checksum, address, String(version)),
        hasDamage: holes === 1,
      }
    })
  }

  collectionCount(): number {
    const [count] = this.#sql.collectionCount.get() ?? []
    return Number(count)
  }

  /** The number of a collection's objects, and their bytes. */
  sizeOf(collection: number): { readonly objects: number; readonly bytes: number } {
    const [objects, bytes] = this.#sql.size.get(collection) ?? []
    return { objects: Number(objects), bytes: Number(bytes) }
  }

  documents(
    identity: string,
    most: number,
  ): { readonly path: string; readonly representation: string; readonly confirmedAt: number }[] {
    return this.#sql.documents.all(identity, most).map(([path, representation, confirmedAt]) => ({
      path: String(path),
      representation: String(representation),
      confirmedAt: Number(confirmedAt),
    }))
  }

  /** Identities that were not used for so long that their data is to be deleted. */
  /** All those for which anything is stored. */
  identities(): string[] {
    return this.#sql.identities.all().map(([identity]) => String(identity))
  }

  idleIdentities(): string[] {
    return this.#sql.idle.all(maxIdleDays).map(([identity]) => String(identity))
  }

  /** Whether the scope was only recorded for kubectl; `undefined`: nothing is stored in it. */
  isInteractive(scope: ScopeKey): boolean | undefined {
    const row = this.#sql.passing.get(...scope)
    return row && row[0] === 1
  }

  /** Scopes were deleted. */
  forgetScopes(): void {
    this.#scopes.clear()
    this.#queries.clear()
    this.#bodies.clear()
  }

  #scope(key: ScopeKey): number | undefined {
    // No part of a path or header contains a NUL, and the length of the identity marks its end.
    const text = `${key[0].length}\0${key.join('\0')}`
    const known = this.#scopes.get(text)
    if (known !== undefined) return known
    const row = this.#sql.scope.get(...key)
    if (!row) return undefined
    this.#scopes.set(text, Number(row[0]))
    return Number(row[0])
  }

  /**
   * In one query; one by one where a page between them is damaged, so that the others are found.
   */
  #bodyRows(ids: readonly number[]): Map<number, Row> {
    const [only] = ids
    if (only === undefined) return new Map()
    if (ids.length === 1) return this.#bodyRow(only)
    try {
      const rows = this.#sql.bodies.all(JSON.stringify(ids))
      return new Map(rows.map((row) => [Number(row[0]), row]))
    } catch (cause) {
      if (!isCorruption(cause)) throw cause
      return new Map(ids.flatMap((id) => [...this.#bodyRow(id)]))
    }
  }

  #bodyRow(id: number): Map<number, Row> {
    try {
      const row = this.#sql.body.get(id)
      return new Map(row ? [[id, row]] : [])
    } catch (cause) {
      if (!isCorruption(cause)) throw cause
      return new Map()
    }
  }
}

/** A namespace and a name. */
interface NamedRow {
  readonly namespace: string
  readonly name: string
}

const namedRow = ([namespace, name]: Row): NamedRow => ({
  namespace: String(namespace),
  name: String(name),
})

/** SQLITE_CORRUPT and its extended codes. */
const isCorruption = (cause: unknown): boolean =>
  cause instanceof Error && 'errcode' in cause && (Number(cause.errcode) & 0xff) === 11

const gvkOf = ([group, version, kind]: Row): GVK => ({
  group: String(group),
  version: String(version),
  kind: String(kind),
})

function toEvent(row: Row): StoredEvent {
  const [seq, type, checksum] = row.slice(12)
  const object = objectRow(row)
  const previous = row[6] === null ? undefined : objectRow(row.slice(6))
  const event = { seq: Number(seq), type: eventTypes[Number(type)] ?? 'MODIFIED', object, previous }
  return {
    ...event,
    size: object.size + (previous?.size ?? 0),
    isWhole:
      checksum ===
      checksumOf(event.seq, event.type, object.resourceVersion, previous?.resourceVersion),
  }
}
