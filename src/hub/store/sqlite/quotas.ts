import type { DatabaseSync } from 'node:sqlite'
import { nodeIdentity, sharedIdentity } from '../../../api/request/identity.ts'
import type { Operation } from './messages.ts'
import { prepare } from './statements.ts'

/** The size of the records of one identity. */
export interface Usage {
  readonly bytes: number
  readonly collections: number
  readonly documents: number
}

export interface Excess {
  readonly of: keyof Usage
  readonly amount: number
}

/**
 * The quota of one identity, as a share of the maximal size of the database and by number; no
 * component of a node comes near. Beyond it, the store evicts the identity's least recently used
 * records until an eighth of the quota is free.
 */
export const quotaShare = 1 / 4
export const quotaCounts = { collections: 2_000, documents: 1_000 }
export const quotaTarget = 7 / 8

/** Bytes that one identity may have stored; lists in progress may have as many again. */
export const quotaBytes = (maxBytes: number): number => quotaShare * maxBytes

/**
 * Without a quota: the records that the node boots with, and those that the hub itself reads for
 * all.
 */
const exempt = new Set<string>([nodeIdentity, sharedIdentity])
export const hasQuota = (identity: string): boolean => !exempt.has(identity)

/** Bounded for a caller that sends ever new tokens. */
const maxMeasured = 10_000

/** The size of a row beside its body, roughly. */
export const rowBytes = 200

/**
 * SQL expressions for bytes: of rows of `member` and `single`, of `document`, and of `collection`
 * with its event log and without.
 */
export const objectWeight = `size + ${rowBytes}`
export const documentWeight = `length(body) + ${rowBytes}`
export const headWeight = `length(extra) + ${3 * rowBytes}`
export const eventLogWeight = `(SELECT coalesce(sum(size + coalesce(previous_size, 0) + ${rowBytes}), 0)
    FROM event WHERE event.collection = collection.id)
  + (SELECT coalesce(sum((value->>9) + coalesce(value->>13, 0) + ${rowBytes}), 0)
    FROM json_each(CASE WHEN json_valid(ring_tail) THEN ring_tail ELSE '[]' END))`
export const collectionWeight = `${headWeight} + ${eventLogWeight} +
  (SELECT coalesce(sum(${objectWeight}), 0) FROM member WHERE member.collection = collection.id)`

/**
 * Measures the records of each identity, so that none can fill the cache and have others' data
 * evicted. A measurement reads all rows of an identity. Therefore writes are added up, as if they
 * replaced nothing, and an identity is measured again only when that sum exceeds its quota.
 */
export class Quotas {
  readonly #quota: Usage
  /** An upper bound of the size of each identity's records. */
  readonly #measured = new Map<string, Usage>()
  readonly #written = new Set<string>()
  readonly #released = new Set<string>()
  readonly #sql

  constructor(db: DatabaseSync, maxBytes: number) {
    this.#quota = { bytes: quotaBytes(maxBytes), ...quotaCounts }
    const ofIdentity = 'scope IN (SELECT id FROM scope WHERE identity = ?)'
    this.#sql = {
      collections: prepare(
        db,
        `SELECT count(*), sum(${collectionWeight}) FROM collection WHERE ${ofIdentity}`,
      ),
      records: prepare(db, `SELECT sum(${objectWeight}) FROM single WHERE ${ofIdentity}`),
      documents: prepare(
        db,
        `SELECT count(*), sum(${documentWeight}) FROM document WHERE identity = ?`,
      ),
    }
  }

  /** Adds up an operation. */
  wrote(operation: Operation): void {
    const written = addedBy(operation)
    if (!written || !hasQuota(written.identity)) return
    const { identity, ...more } = written
    const noted = this.#measured.get(identity)
    if (noted) this.#measured.set(identity, sum(noted, more))
    this.#written.add(identity)
  }

  /** The identities beyond their quota, of those written for since the last call. */
  exceeded(): string[] {
    const identities = [...this.#written]
    this.#written.clear()
    return identities.filter((identity) => {
      const noted = this.#measured.get(identity)
      if (noted && !this.#exceeds(noted, 1)) return false
      return this.#exceeds(this.#measure(identity), 1)
    })
  }

  /** The excess of an identity over seven eighths of its quota; `undefined`: none. */
  excess(identity: string): Excess | undefined {
    const noted = this.#measured.get(identity)
    return (
      (noted && this.#exceeds(noted, quotaTarget)) ??
      this.#exceeds(this.#measure(identity), quotaTarget)
    )
  }

  /** Part of the identity's records was evicted. */
  released(identity: string, less: Usage): void {
    const noted = this.#measured.get(identity)
    if (!noted) return
    this.#released.add(identity)
    const { bytes, collections, documents } = less
    this.#measured.set(
      identity,
      sum(noted, { bytes: -bytes, collections: -collections, documents: -documents }),
    )
  }

  /** The transaction was rolled back, and its evictions with it. */
  rolledBack(): void {
    for (const identity of this.#released) this.#measured.delete(identity)
    this.#released.clear()
  }

  #exceeds(usage: Usage, part: number): Excess | undefined {
    for (const what of ['collections', 'documents', 'bytes'] as const) {
      const amount = usage[what] - part * this.#quota[what]
      if (amount > 0) return { of: what, amount }
    }
    return undefined
  }

  #measure(identity: string): Usage {
    const [collections, ofCollections] = this.#sql.collections.get(identity) ?? []
    const [ofRecords] = this.#sql.records.get(identity) ?? []
    const [documents, ofDocuments] = this.#sql.documents.get(identity) ?? []
    const usage = {
      bytes: Number(ofCollections) + Number(ofRecords) + Number(ofDocuments),
      collections: Number(collections),
      documents: Number(documents),
    }
    if (this.#measured.size >= maxMeasured) this.#measured.clear()
    this.#measured.set(identity, usage)
    return usage
  }
}

const sum = (a: Usage, b: Usage): Usage => ({
  bytes: a.bytes + b.bytes,
  collections: a.collections + b.collections,
  documents: a.documents + b.documents,
})

const nothing: Usage = { bytes: 0, collections: 0, documents: 0 }

/**
 * The most that an operation adds, and for which identity. Staged objects count, as they become
 * members.
 */
function addedBy(operation: Operation): (Usage & { readonly identity: string }) | undefined {
  switch (operation.kind) {
    case 'put':
    case 'stage': {
      const scope = operation.kind === 'put' ? operation.scope : operation.collection.scope
      return {
        ...nothing,
        identity: scope[0],
        bytes: rowsOf(operation) * rowBytes + bytesOf(operation),
      }
    }
    case 'apply': {
      // As a member, and as two bodies of the event log.
      const bytes = 3 * bytesOf(operation) + 2 * rowsOf(operation) * rowBytes
      return { ...nothing, identity: operation.collection.scope[0], bytes }
    }
    case 'commit-list': {
      const bytes = operation.extra.length + 3 * rowBytes
      return { ...nothing, identity: operation.collection.scope[0], bytes, collections: 1 }
    }
    case 'document': {
      const bytes = operation.body.byteLength + rowBytes
      return { ...nothing, identity: operation.key[0], bytes, documents: 1 }
    }
    default:
      return undefined
  }
}

type WithObjects = Extract<Operation, { readonly kind: 'put' | 'stage' | 'apply' }>

const rowsOf = ({ objects }: WithObjects): number => objects.lengths.length
const bytesOf = ({ objects }: WithObjects): number => objects.bytes.byteLength

/** The objects and documents that an operation writes. */
export function writeSize(operation: Operation): { readonly rows: number; readonly bytes: number } {
  switch (operation.kind) {
    case 'put':
    case 'stage':
    case 'apply':
      return { rows: rowsOf(operation), bytes: bytesOf(operation) }
    case 'document':
      return { rows: 1, bytes: operation.body.byteLength }
    case 'commit-list':
      return { rows: 1, bytes: 0 }
    default:
      return { rows: 0, bytes: 0 }
  }
}

/** The most that an object or event writes besides its body: a page in each of a few trees. */
const rowGrowth = 32 * 1024

/**
 * By how many bytes an operation lets database and WAL grow at most; Infinity: by more than its
 * size says. The store measures them after a commit only once the sum of these could be too much.
 */
export function growthOf(operation: Operation): number {
  if (operation.kind !== 'apply' && operation.kind !== 'put') return Infinity
  return 4 * bytesOf(operation) + (1 + rowsOf(operation)) * rowGrowth
}
