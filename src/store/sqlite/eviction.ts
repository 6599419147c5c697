import type { DatabaseSync } from 'node:sqlite'
import { node, shared } from '../../request/identity.ts'
import type { CollectionAddress, ScopeKey } from './messages.ts'
import type { Objects } from './objects.ts'
import type { Rings } from './rings.ts'
import { prepare, type Row, type Statement } from './statements.ts'

/**
 * What is least needed, first: `passing` is what a person at a console looked at, `idle` that of callers who have not been seen for a day,
 * `gone` what only pods that are gone have referred to.
 */
export type EvictedKind = 'passing' | 'idle' | 'document' | 'object' | 'collection' | 'gone'

/** What one step took away. */
export interface Evicted {
  readonly kind: EvictedKind
  /** Objects and documents. */
  readonly count: number
  /** Are not there any more, or will not be after further steps. */
  readonly collections?: readonly CollectionAddress[]
}

/** Whether something was taken away, and whether another step may give more room. */
export interface Step {
  readonly evicted?: Evicted
  readonly more: boolean
  /** There is not enough room, and nothing left that may go. */
  readonly exhausted?: true
  /** There is not enough room, and enough would be given back if no list were being read. */
  readonly pinned?: true
}

/** Rows taken in one step: whoever writes meanwhile waits for no more than that. */
const stepRows = 250
const stepDocuments = 10
const stepGone = 25

/** Of the bytes that the database may have: above the first room is made, until the second is reached. */
const near = 0.9
const enough = 0.8

const quoted = (texts: readonly string[]): string => texts.map((each) => `'${each}'`).join(', ')

/** What a kubelet needs to run its pods again after a boot without a link: they, what they refer to, and how their volumes are attached. */
const needed = [
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
 * What a kubelet asks for one by one because a pod refers to it, so that of a pod that is gone it stays. Not attachments: how those of
 * volumes are called that are not of CSI is not ours to know.
 */
const referred = [
  '/secrets',
  '/configmaps',
  '/serviceaccounts',
  '/persistentvolumeclaims',
  '/persistentvolumes',
  'resource.k8s.io/resourceclaims',
]

/** Those that are `?`, a list in JSON, name them all, as `placeNameOf` has it. */
const unreferred = (name: string, namespace: string): string =>
  `identity = '${node}' AND passing = 0 AND api_group || '/' || resource IN (${quoted(referred)})
   AND api_group || '/' || resource || '/' || ${namespace} || '/' || ${name} NOT IN (SELECT value FROM json_each(?))`

const byName = 'metadata.name='

const ofNode = `identity = '${node}' AND api_group || '/' || resource IN (${quoted(needed)})`
const neededScopes = `SELECT id FROM scope WHERE passing = 0 AND (identity = '${shared}' OR ${ofNode})`
const passingScopes = 'SELECT id FROM scope WHERE passing = 1'
/** Discovery, which programs read before they do anything; OpenAPI is for people. */
const neededDocuments = `identity = '${node}' AND (${['/api', '/apis', '/version']
  .map((path) => `url = '${path}' OR url GLOB '${path}[/?]*'`)
  .join(' OR ')})`

/**
 * The writer's view of a database that comes near to what it may take: step by step the least needed goes, and what a node needs to boot never;
 * what pods refer to goes last, and only where somebody says what of it is needed.
 * A collection goes as a whole: from its first step on it was never listed.
 */
export class Eviction {
  readonly #objects: Objects
  readonly #rings: Rings
  readonly #maxBytes: number
  readonly #pageSize: number
  readonly #sql

  constructor(db: DatabaseSync, objects: Objects, rings: Rings, maxBytes: number) {
    this.#objects = objects
    this.#rings = rings
    this.#maxBytes = maxBytes
    this.#pageSize = Number(prepare(db, 'PRAGMA page_size').get()?.[0])
    const collections = (where: string, order = '', most = 1): Statement =>
      prepare(
        db,
        `SELECT collection.id, scope, version, namespace, label_selector, field_selector,
           identity, form, api_group, api_version, resource
         FROM collection JOIN scope ON scope.id = scope WHERE ${where} ${order} LIMIT ${most}`,
      )
    const singles = (where: string): Statement =>
      prepare(
        db,
        `SELECT scope, namespace, name, body, size FROM single WHERE ${where} LIMIT ${stepRows}`,
      )
    const documents = (where: string): Statement =>
      prepare(
        db,
        `DELETE FROM document WHERE rowid IN
           (SELECT rowid FROM document WHERE ${where} LIMIT ${stepDocuments}) RETURNING 1`,
      )
    const ofIdle = 'scope IN (SELECT id FROM scope WHERE identity = ?)'
    this.#sql = {
      pages: prepare(db, 'PRAGMA page_count'),
      free: prepare(db, 'PRAGMA freelist_count'),
      asked: prepare(db, 'UPDATE scope SET passing = 0 WHERE id = ? AND passing = 1'),
      passing: prepare(db, 'UPDATE scope SET passing = 1 WHERE id = ?'),
      passingCollection: collections(`scope IN (${passingScopes})`),
      passingSingles: singles(`scope IN (${passingScopes})`),
      idle: prepare(
        db,
        `SELECT identity FROM audience
         WHERE idle_days > 0 AND identity NOT IN ('${node}', '${shared}') AND (
           EXISTS (SELECT 1 FROM document WHERE document.identity = audience.identity)
           OR EXISTS (SELECT 1 FROM scope WHERE scope.identity = audience.identity AND (
             EXISTS (SELECT 1 FROM collection WHERE scope = scope.id)
             OR EXISTS (SELECT 1 FROM single WHERE scope = scope.id))))
         ORDER BY idle_days DESC LIMIT 1`,
      ),
      idleCollection: collections(ofIdle),
      idleSingles: singles(ofIdle),
      idleDocuments: documents('identity = ?'),
      documents: documents(`NOT (${neededDocuments})`),
      singles: singles(`scope NOT IN (${neededScopes})`),
      // What others have is what a node's network may be made of: the node's own rest goes first, then what was confirmed longest ago.
      collection: collections(
        `scope NOT IN (${neededScopes})`,
        `ORDER BY identity <> '${node}', confirmed_at, collection.id`,
      ),
      // Few at a time: somebody may still follow the latest.
      goneCollections: collections(
        `label_selector = '' AND field_selector GLOB '${byName}*' AND instr(field_selector, ',') = 0
         AND ${unreferred(`substr(field_selector, ${byName.length + 1})`, 'collection.namespace')}`,
        'ORDER BY confirmed_at, collection.id',
        stepGone,
      ),
      goneSingles: prepare(
        db,
        `SELECT scope, namespace, name, body, size FROM single JOIN scope ON scope.id = scope
         WHERE ${unreferred('name', 'namespace')} ORDER BY confirmed_at LIMIT ${stepGone}`,
      ),
      disown: prepare(db, 'UPDATE collection SET whole = 0 WHERE id = ? AND whole = 1'),
      ringed: prepare(db, 'SELECT 1 FROM collection WHERE id = ? AND ring_next > ring_first'),
      members: prepare(
        db,
        `SELECT namespace, name, body, size FROM member WHERE collection = ? LIMIT ${stepRows}`,
      ),
      removeMember: prepare(
        db,
        'DELETE FROM member WHERE collection = ? AND namespace = ? AND name = ?',
      ),
      removeCollection: prepare(db, 'DELETE FROM collection WHERE id = ?'),
      recall: prepare(
        db,
        `DELETE FROM forgotten WHERE scope = ?1 AND NOT EXISTS (
           SELECT 1 FROM collection JOIN member ON member.collection = collection.id
           WHERE collection.scope = ?1 AND member.namespace = forgotten.namespace
             AND member.name = forgotten.name)`,
      ),
      removeSingle: prepare(
        db,
        'DELETE FROM single WHERE scope = ? AND namespace = ? AND name = ?',
      ),
    }
  }

  /** Asked after each commit: mostly all pages together, whether they hold anything or not, tell that it is not. */
  get isNear(): boolean {
    const limit = near * this.#maxBytes
    return this.#bytesOf(this.#sql.pages) > limit && this.#used() > limit
  }

  /** Somebody is about to be told what lies in the scope; `passing` where a person asked, and nobody else ever did. */
  asked(scope: ScopeKey, passing: boolean): void {
    const known = this.#objects.knownScope(scope)
    if (!passing) {
      if (known !== undefined) this.#sql.asked.run(known)
    } else if (known === undefined) this.#sql.passing.run(this.#objects.scope(scope))
  }

  /** Gives back rows that are kept for later, and takes away some of what is least needed, if that is not enough. */
  step(needed?: readonly string[]): Step {
    const given = this.#objects.giveBack(stepRows)
    if (this.#used() - this.#objects.keptBytes <= enough * this.#maxBytes) {
      if (given > 0 || !this.isNear) return { more: given > 0 && this.isNear }
      return { more: false, pinned: true }
    }
    const evicted = this.#evict() ?? (needed && this.#gone(JSON.stringify(needed)))
    if (evicted) return { evicted, more: true }
    return given > 0 ? { more: true } : { more: false, exhausted: true }
  }

  /** Bytes of pages that hold something. */
  #used(): number {
    return this.#bytesOf(this.#sql.pages) - this.#bytesOf(this.#sql.free)
  }

  #bytesOf(pages: Statement): number {
    return Number(pages.get()?.[0]) * this.#pageSize
  }

  #evict(): Evicted | undefined {
    const sql = this.#sql
    return (
      this.#collection('passing', sql.passingCollection.get()) ??
      this.#singles('passing', sql.passingSingles.all()) ??
      this.#idle() ??
      counted('document', sql.documents.all()) ??
      this.#singles('object', sql.singles.all()) ??
      this.#collection('collection', sql.collection.get())
    )
  }

  #gone(needed: string): Evicted | undefined {
    const evicted = this.#sql.goneCollections
      .all(needed)
      .flatMap((row) => this.#collection('gone', row) ?? [])
    if (evicted.length === 0) return this.#singles('gone', this.#sql.goneSingles.all(needed))
    return {
      kind: 'gone',
      count: evicted.reduce((sum, { count }) => sum + count, 0),
      collections: evicted.flatMap(({ collections = [] }) => collections),
    }
  }

  #idle(): Evicted | undefined {
    const [identity] = this.#sql.idle.get() ?? []
    if (identity === undefined) return undefined
    return (
      this.#collection('idle', this.#sql.idleCollection.get(identity)) ??
      this.#singles('idle', this.#sql.idleSingles.all(identity)) ??
      counted('idle', this.#sql.idleDocuments.all(identity))
    )
  }

  #collection(kind: EvictedKind, row: Row | undefined): Evicted | undefined {
    if (!row) return undefined
    const [id = 0, scope, version, namespace, labelSelector, fieldSelector, ...key] = row
    const of = { id: Number(id), scope: Number(scope) }
    const evicted = (count: number): Evicted => ({
      kind,
      count,
      collections: [
        {
          scope: key.map(String) as unknown as ScopeKey,
          namespace: String(namespace),
          labelSelector: String(labelSelector),
          fieldSelector: String(fieldSelector),
        },
      ],
    })
    this.#sql.disown.run(of.id)
    if (this.#sql.ringed.get(of.id)) {
      this.#rings.restart(of, String(version))
      return evicted(0)
    }
    const members = this.#sql.members.all(of.id)
    for (const [name, ...rest] of members) {
      this.#sql.removeMember.run(of.id, name ?? '', rest[0] ?? '')
      this.#release([of.scope, name ?? '', ...rest])
    }
    if (members.length < stepRows) {
      this.#sql.removeCollection.run(of.id)
      this.#sql.recall.run(of.scope)
      this.#rings.forget()
    }
    return evicted(members.length)
  }

  #singles(kind: EvictedKind, rows: readonly Row[]): Evicted | undefined {
    for (const row of rows) {
      const [scope = 0, namespace = '', name = ''] = row
      this.#sql.removeSingle.run(scope, namespace, name)
      this.#release(row)
    }
    return counted(kind, rows)
  }

  #release([scope, namespace, name, body, size]: Row): void {
    this.#objects.release(Number(scope), {
      id: Number(body),
      namespace: String(namespace),
      name: String(name),
      size: Number(size),
    })
  }
}

const counted = (kind: EvictedKind, rows: readonly Row[]): Evicted | undefined =>
  rows.length > 0 ? { kind, count: rows.length } : undefined
