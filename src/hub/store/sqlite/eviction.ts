import type { DatabaseSync } from 'node:sqlite'
import { nodeIdentity, sharedIdentity } from '../../../api/request/identity.ts'
import type { Evicted, EvictedKind, EvictionStep } from './messages.ts'
import type { CollectionAddress, ScopeKey } from './address.ts'
import { bodyReference } from './object-row.ts'
import {
  collectionWeight,
  documentWeight,
  headWeight,
  objectWeight,
  eventLogWeight,
  type Quotas,
  type Usage,
} from './quotas.ts'
import { prepare, type Row, type Statement } from './statements.ts'
import type { Tables } from './tables.ts'

/**
 * Rows evicted in one step, which other writes wait for. If more was written since the last step, a
 * step evicts twice as much, in rows and bytes, so that no flood outruns it.
 */
export const stepRows = 250
/** Documents are large: each counts as this many rows. */
const rowsOfDocument = 25
const stepGone = 25

/**
 * Shares of the maximal size of the database: eviction starts above the first and stops at the
 * second.
 */
export const evictAbove = 0.9
export const evictDownTo = 0.8

const quoted = (texts: readonly string[]): string => texts.map((each) => `'${each}'`).join(', ')

/** The resources that a kubelet needs to run its pods again after a boot without a link. */
const bootResources = [
  '/nodes',
  '/pods',
  '/secrets',
  '/configmaps',
  '/services',
  '/serviceaccounts',
  '/serviceaccounts/token',
  '/persistentvolumeclaims',
  '/persistentvolumes',
  'certificates.k8s.io/clustertrustbundles',
  'coordination.k8s.io/leases',
  'node.k8s.io/runtimeclasses',
  'resource.k8s.io/resourceclaims',
  'storage.k8s.io/csidrivers',
  'storage.k8s.io/csinodes',
  'storage.k8s.io/volumeattachments',
]

/**
 * Objects that a kubelet reads one by one because a pod refers to them, so that they stay behind
 * when the pod is gone. Not attachments: the names of those that are not of CSI are unknown here.
 */
const podResources = [
  '/secrets',
  '/configmaps',
  '/serviceaccounts',
  '/persistentvolumeclaims',
  '/persistentvolumes',
  'resource.k8s.io/resourceclaims',
]

/** Not among the names in `?`, a JSON array of names as `qualifiedName` forms them. */
const isUnreferenced = (name: string, namespace: string): string =>
  `identity = '${nodeIdentity}' AND passing = 0 AND api_group || '/' || resource IN (${quoted(podResources)})
   AND api_group || '/' || resource || '/' || ${namespace} || '/' || ${name} NOT IN (SELECT value FROM json_each(?))`

const byName = 'metadata.name='

const ofNode = `identity = '${nodeIdentity}' AND api_group || '/' || resource IN (${quoted(bootResources)})`
const neededScopes = `SELECT id FROM scope WHERE passing = 0 AND (identity = '${sharedIdentity}' OR ${ofNode})`
const passingScopes = 'SELECT id FROM scope WHERE passing = 1'
/** Discovery, which programs read first. OpenAPI is for people. */
const neededDocuments = `identity = '${nodeIdentity}' AND (${['/api', '/apis', '/version']
  .map((path) => `url = '${path}' OR url GLOB '${path}[/?]*'`)
  .join(' OR ')})`

/** Writes since the last step. */
interface WriteLoad {
  readonly rows: number
  readonly bytes: number
}

const none: WriteLoad = { rows: 0, bytes: 0 }

/** The budget of one step. */
class StepBudget {
  readonly #kind: EvictedKind
  readonly #collections: CollectionAddress[] = []
  #count = 0
  #rowsLeft: number
  /** Bytes that the step must evict at least, whatever the number of rows. */
  #bytesDue: number
  #bytesLeft: number
  #isEmpty = true

  /** `bytes`: evict at most about this much. */
  constructor(kind: EvictedKind, written: WriteLoad, bytes = Infinity) {
    this.#kind = kind
    this.#rowsLeft = Math.max(stepRows, 2 * written.rows)
    this.#bytesDue = 2 * written.bytes
    this.#bytesLeft = bytes
  }

  get rowsLeft(): number {
    if (this.#bytesLeft <= 0) return 0
    if (this.#rowsLeft > 0) return this.#rowsLeft
    return this.#bytesDue > 0 ? stepRows : 0
  }

  /** Objects or documents were evicted. */
  took(count: number, bytes: number, rows = count): void {
    this.#count += count
    this.#bytesLeft -= bytes
    this.#bytesDue -= bytes
    this.#rowsLeft -= rows
    this.#isEmpty = false
  }

  /**
   * Part of a collection was evicted. An event, and a collection's row, count as much as an object.
   */
  tookOf(collection: CollectionAddress, count: number, bytes: number, rows: number): void {
    this.took(count, bytes, rows)
    this.#collections.push(collection)
  }

  get evicted(): Evicted | undefined {
    if (this.#isEmpty) return undefined
    return { kind: this.#kind, count: this.#count, collections: this.#collections }
  }
}

/** Evicts part of an identity's records. `undefined`: it has none. */
type EvictOldest = (identity: string, taking: StepBudget) => Usage | undefined

/** A kind of which the heaviest identity is evicted first. */
interface EvictionClass {
  readonly kind: EvictedKind
  /** Identities that have something of this kind, and its weight. */
  readonly weights: Statement
  readonly take: EvictOldest
}

/**
 * Evicts from a database that is nearly full, and from identities beyond their quota: step by step,
 * least needed first. It never evicts the records that a node boots with, and objects that pods
 * refer to only last, and only with a list of those that are still referenced. A collection is
 * evicted as a whole: from the first step on it counts as never listed.
 */
export class Eviction {
  readonly #tables: Tables
  readonly #quotas: Quotas
  readonly #maxBytes: number
  readonly #pageSize: number
  readonly #classes: readonly [passing: EvictionClass, ...EvictionClass[]]
  /**
   * Per kind, ordered by least recent use. Read when a kind's turn comes, and reduced by each
   * eviction; read again at its next turn, or when used up.
   */
  readonly #weights = new Map<EvictedKind, Map<string, number>>()
  /** Since the last step of an eviction in progress. */
  #written: WriteLoad | undefined
  /** By how much the database may grow before it can be nearly full. */
  #headroom = 0
  readonly #sql

  constructor(db: DatabaseSync, tables: Tables, quotas: Quotas, maxBytes: number) {
    this.#tables = tables
    this.#quotas = quotas
    this.#maxBytes = maxBytes
    this.#pageSize = Number(prepare(db, 'PRAGMA page_size').get()?.[0])
    const collections = (where: string, most = 1): Statement =>
      prepare(
        db,
        `SELECT collection.id, scope, version, ${headWeight}, namespace, label_selector, field_selector,
           identity, form, api_group, api_version, resource
         FROM collection JOIN scope ON scope.id = scope
         WHERE ${where} ORDER BY confirmed_at, collection.id LIMIT ${most}`,
      )
    const records = (where: string): Statement =>
      prepare(
        db,
        `SELECT scope, namespace, name, body, size, ${objectWeight} FROM single
         WHERE ${where} ORDER BY confirmed_at LIMIT ?`,
      )
    const documents = (where: string): Statement =>
      prepare(
        db,
        `SELECT rowid, ${documentWeight} FROM document
         WHERE ${where} ORDER BY confirmed_at LIMIT ?`,
      )
    const weights = (...of: readonly string[]): Statement =>
      prepare(
        db,
        `SELECT identity, sum(weight) FROM (${of.join(' UNION ALL ')})
         GROUP BY identity ORDER BY min(at)`,
      )
    const ofCollections = (where: string): string =>
      `SELECT identity, ${collectionWeight} AS weight, confirmed_at AS at
       FROM collection JOIN scope ON scope.id = scope WHERE ${where}`
    const ofRecords = (where: string): string =>
      `SELECT identity, ${objectWeight} AS weight, confirmed_at AS at
       FROM single JOIN scope ON scope.id = scope WHERE ${where}`
    const ofIdentity = 'scope IN (SELECT id FROM scope WHERE identity = ?)'
    const isPassing = `scope IN (${passingScopes})`
    const isFree = `scope NOT IN (${neededScopes})`
    const isFreeDocument = `NOT (${neededDocuments})`
    const passing = [
      this.#collections(collections(`${isPassing} AND identity = ?`)),
      this.#evictRecords(records(`${isPassing} AND ${ofIdentity}`)),
    ] as const
    this.#classes = [
      {
        kind: 'passing',
        weights: weights(ofCollections(isPassing), ofRecords(isPassing)),
        take: (identity, taking) => passing[0](identity, taking) ?? passing[1](identity, taking),
      },
      {
        kind: 'document',
        weights: weights(
          `SELECT identity, ${documentWeight} AS weight, confirmed_at AS at
           FROM document WHERE ${isFreeDocument}`,
        ),
        take: this.#documents(documents(`${isFreeDocument} AND identity = ?`)),
      },
      {
        kind: 'object',
        weights: weights(ofRecords(isFree)),
        take: this.#evictRecords(records(`${isFree} AND ${ofIdentity}`)),
      },
      {
        kind: 'collection',
        weights: weights(ofCollections(isFree)),
        take: this.#collections(collections(`${isFree} AND identity = ?`)),
      },
    ]
    this.#sql = {
      pages: prepare(db, 'PRAGMA page_count'),
      free: prepare(db, 'PRAGMA freelist_count'),
      clearInteractive: prepare(db, 'UPDATE scope SET passing = 0 WHERE id = ? AND passing = 1'),
      setInteractive: prepare(db, 'UPDATE scope SET passing = 1 WHERE id = ?'),
      own: {
        collection: this.#collections(collections(`${ofIdentity}`)),
        object: this.#evictRecords(records(ofIdentity)),
        document: this.#documents(documents('identity = ?')),
      },
      oldest: prepare(
        db,
        `SELECT kind FROM (
           SELECT 'collection' AS kind, min(confirmed_at) AS at FROM collection WHERE ${ofIdentity}
           UNION ALL SELECT 'object', min(confirmed_at) FROM single WHERE ${ofIdentity}
           UNION ALL SELECT 'document', min(confirmed_at) FROM document WHERE identity = ?)
         WHERE at IS NOT NULL ORDER BY at LIMIT 1`,
      ),
      idle: prepare(
        db,
        `SELECT identity FROM audience
         WHERE idle_days > 0 AND identity NOT IN ('${nodeIdentity}', '${sharedIdentity}') AND (
           EXISTS (SELECT 1 FROM document WHERE document.identity = audience.identity)
           OR EXISTS (SELECT 1 FROM scope WHERE scope.identity = audience.identity AND (
             EXISTS (SELECT 1 FROM collection WHERE scope = scope.id)
             OR EXISTS (SELECT 1 FROM single WHERE scope = scope.id))))
         ORDER BY idle_days DESC LIMIT 1`,
      ),
      // Few at a time: a client may still watch the latest.
      unreferencedCollections: collections(
        `label_selector = '' AND field_selector GLOB '${byName}*' AND instr(field_selector, ',') = 0
         AND ${isUnreferenced(`substr(field_selector, ${byName.length + 1})`, 'collection.namespace')}`,
        stepGone,
      ),
      unreferencedRecords: prepare(
        db,
        `SELECT scope, namespace, name, body, size, ${objectWeight}
         FROM single JOIN scope ON scope.id = scope
         WHERE ${isUnreferenced('name', 'namespace')} ORDER BY confirmed_at LIMIT ${stepGone}`,
      ),
      removeDocument: prepare(db, 'DELETE FROM document WHERE rowid = ?'),
      invalidate: prepare(db, 'UPDATE collection SET whole = 0 WHERE id = ? AND whole = 1'),
      logged: prepare(
        db,
        `SELECT ring_next - ring_first, ${eventLogWeight} FROM collection
         WHERE id = ? AND ring_next > ring_first`,
      ),
      members: prepare(
        db,
        `SELECT namespace, name, body, size, ${objectWeight} FROM member WHERE collection = ? LIMIT ?`,
      ),
      removeCollection: prepare(db, 'DELETE FROM collection WHERE id = ?'),
      recall: prepare(
        db,
        `DELETE FROM forgotten WHERE scope = ?1 AND NOT EXISTS (
           SELECT 1 FROM collection JOIN member ON member.collection = collection.id
           WHERE collection.scope = ?1 AND member.namespace = forgotten.namespace
             AND member.name = forgotten.name
           UNION ALL
           SELECT 1 FROM single WHERE single.scope = ?1 AND single.namespace = forgotten.namespace
             AND single.name = forgotten.name)`,
      ),
    }
  }

  /**
   * Called after each commit: mostly the size of the writes, or the page count alone, shows that it
   * is not.
   */
  get isNear(): boolean {
    if (this.#headroom > 0) return false
    const limit = evictAbove * this.#maxBytes
    const bytes = this.#bytesOf(this.#sql.pages)
    this.#headroom = limit - bytes
    return bytes > limit && this.#used() > limit
  }

  /** Objects and documents were written; the database has grown by `growth` at most. */
  wrote({ rows, bytes }: WriteLoad, growth: number): void {
    this.#headroom -= growth
    if (!this.#written) return
    this.#written = { rows: this.#written.rows + rows, bytes: this.#written.bytes + bytes }
  }

  /** The transaction was rolled back. */
  rolledBack(): void {
    this.#weights.clear()
  }

  /** A scope is about to be recorded to; see `Partition`. Once without `evictFirst` is for good. */
  markScope(scope: ScopeKey, evictFirst: boolean): void {
    const known = this.#tables.objects.knownScope(scope)
    if (!evictFirst) {
      if (known !== undefined) this.#sql.clearInteractive.run(known)
    } else if (known === undefined) this.#sql.setInteractive.run(this.#tables.objects.scope(scope))
  }

  /** Deletes free rows, and evicts some of the least needed records if that is not enough. */
  step(needed?: readonly string[]): EvictionStep {
    const given = this.#tables.objects.giveBack(stepRows)
    const excess = this.#used() - this.#tables.objects.keptBytes - evictDownTo * this.#maxBytes
    if (excess <= 0) {
      this.#weights.clear()
      this.#written = undefined
      if (given > 0 || !this.isNear) return { more: given > 0 && this.isNear }
      return { more: false, pinned: true }
    }
    const evicted = this.#evict(excess) ?? (needed && this.#unreferenced(JSON.stringify(needed)))
    if (evicted) return { evicted, more: true }
    return given > 0 ? { more: true } : { more: false, exhausted: true }
  }

  /** Evicts the least recently used records of an identity, if it is beyond its quota. */
  stepOf(identity: string): EvictionStep {
    let excess = this.#quotas.excess(identity)
    if (!excess) {
      this.#written = undefined
      return { more: false }
    }
    const taking = new StepBudget(
      'quota',
      this.#takeWritten(),
      excess.of === 'bytes' ? excess.amount : Infinity,
    )
    for (; excess && taking.rowsLeft > 0; excess = this.#quotas.excess(identity)) {
      const kind = excess.of === 'bytes' ? this.#oldestOf(identity) : kindOf[excess.of]
      const taken = kind && this.#sql.own[kind](identity, taking)
      if (!taken) break
      this.#quotas.released(identity, taken)
    }
    const { evicted } = taking
    return evicted ? { evicted, more: true } : { more: false }
  }

  #oldestOf(identity: string): 'collection' | 'object' | 'document' | undefined {
    const [kind] = this.#sql.oldest.get(identity, identity, identity) ?? []
    return kind as 'collection' | 'object' | 'document' | undefined
  }

  /** Bytes of the pages in use. */
  #used(): number {
    return this.#bytesOf(this.#sql.pages) - this.#bytesOf(this.#sql.free)
  }

  #bytesOf(pages: Statement): number {
    return Number(pages.get()?.[0]) * this.#pageSize
  }

  /** The writes that this step must keep up with. */
  #takeWritten(): WriteLoad {
    const written = this.#written ?? none
    this.#written = none
    return written
  }

  /** Evicts about this many bytes, if one step may. */
  #evict(bytes: number): Evicted | undefined {
    const written = this.#takeWritten()
    const begin = (kind: EvictedKind): StepBudget => new StepBudget(kind, written, bytes)
    const [passing, ...others] = this.#classes
    let evicted = this.#ofClass(passing, begin) ?? this.#idle(begin('idle'))
    for (const each of others) evicted ??= this.#ofClass(each, begin)
    return evicted
  }

  #ofClass(of: EvictionClass, begin: (kind: EvictedKind) => StepBudget): Evicted | undefined {
    const known = this.#weights.get(of.kind)
    const evicted = known && this.#ofHeaviest(of, known, begin(of.kind))
    if (evicted) return evicted
    const weights = weighed(of.weights)
    this.#weights.set(of.kind, weights)
    return this.#ofHeaviest(of, weights, begin(of.kind))
  }

  #ofHeaviest(
    { kind, take }: EvictionClass,
    weights: Map<string, number>,
    taking: StepBudget,
  ): Evicted | undefined {
    while (taking.rowsLeft > 0) {
      // Other identities' collections may run the node's network: the node's own unneeded ones are
      // evicted first.
      const identity =
        kind === 'collection' && weights.has(nodeIdentity) ? nodeIdentity : heaviest(weights)
      if (identity === undefined) break
      const taken = take(identity, taking)
      if (taken) weights.set(identity, (weights.get(identity) ?? 0) - taken.bytes)
      else weights.delete(identity)
    }
    return taking.evicted
  }

  #unreferenced(needed: string): Evicted | undefined {
    const taking = new StepBudget('gone', none)
    for (const row of this.#sql.unreferencedCollections.all(needed)) this.#collection(row, taking)
    if (!taking.evicted) this.#removeRecords(this.#sql.unreferencedRecords.all(needed), taking)
    return taking.evicted
  }

  #idle(taking: StepBudget): Evicted | undefined {
    const [identity] = this.#sql.idle.get() ?? []
    if (identity === undefined) return undefined
    const { collection, object, document } = this.#sql.own
    for (const take of [collection, object, document])
      while (taking.rowsLeft > 0 && take(String(identity), taking));
    return taking.evicted
  }

  #collections(oldest: Statement): EvictOldest {
    return (identity, taking) => {
      const row = oldest.get(identity)
      return row && this.#collection(row, taking)
    }
  }

  #collection(row: Row, taking: StepBudget): Usage {
    const [id = 0, scope, version, weight, namespace, labelSelector, fieldSelector, ...key] = row
    const of = { id: Number(id), scope: Number(scope) }
    const address: CollectionAddress = {
      scope: key.map(String) as unknown as ScopeKey,
      namespace: String(namespace),
      labelSelector: String(labelSelector),
      fieldSelector: String(fieldSelector),
    }
    this.#sql.invalidate.run(of.id)
    const log = this.#sql.logged.get(of.id)
    if (log) {
      this.#tables.eventLogs.restart(of, String(version))
      const [events, bytes] = [Number(log[0]), Number(log[1])]
      taking.tookOf(address, 0, bytes, events)
      return { bytes, collections: 0, documents: 0 }
    }
    const most = Math.max(1, taking.rowsLeft)
    const members = this.#sql.members.all(of.id, most)
    let bytes = 0
    for (const row of members) {
      this.#tables.members.remove(of.scope, of.id, bodyReference(row))
      bytes += Number(row[4])
    }
    const isGone = members.length < most
    if (isGone) {
      this.#sql.removeCollection.run(of.id)
      this.#sql.recall.run(of.scope)
      this.#tables.eventLogs.forget()
      bytes += Number(weight)
    }
    taking.tookOf(address, members.length, bytes, members.length + 1)
    return { bytes, collections: isGone ? 1 : 0, documents: 0 }
  }

  #evictRecords(oldest: Statement): EvictOldest {
    return (identity, taking) =>
      this.#removeRecords(oldest.all(identity, Math.min(stepRows, taking.rowsLeft)), taking)
  }

  #removeRecords(rows: readonly Row[], taking: StepBudget): Usage | undefined {
    if (rows.length === 0) return undefined
    let bytes = 0
    for (const [scope, ...row] of rows) {
      if (taking.rowsLeft === 0) break
      this.#tables.records.removeRow(Number(scope), bodyReference(row))
      const weight = Number(row[4])
      bytes += weight
      taking.took(1, weight)
    }
    return { bytes, collections: 0, documents: 0 }
  }

  #documents(oldest: Statement): EvictOldest {
    return (identity, taking) => {
      const rows = oldest.all(identity, Math.ceil(taking.rowsLeft / rowsOfDocument))
      if (rows.length === 0) return undefined
      let [bytes, documents] = [0, 0]
      for (const [rowid = 0, weight] of rows) {
        if (taking.rowsLeft === 0) break
        this.#sql.removeDocument.run(rowid)
        bytes += Number(weight)
        documents += 1
        taking.took(1, Number(weight), rowsOfDocument)
      }
      return { bytes, collections: 0, documents }
    }
  }
}

const kindOf = { collections: 'collection', documents: 'document' } as const

const weighed = (weights: Statement): Map<string, number> =>
  new Map(weights.all().map(([identity, weight]) => [String(identity), Number(weight)]))

function heaviest(weights: ReadonlyMap<string, number>): string | undefined {
  let most: string | undefined
  for (const [identity, weight] of weights)
    if (most === undefined || weight > (weights.get(most) ?? 0)) most = identity
  return most
}
