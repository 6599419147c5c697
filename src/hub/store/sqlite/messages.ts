import { lengthOf } from '../../../base/bytes.ts'
import type { ObjectEvent } from '../../../api/codec/watch.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import type { DocumentContent } from '../store.ts'
import type { CollectionAddress, ScopeKey } from './address.ts'
import type { SharedDiskWork } from './disk-work.ts'
import type { ObjectRow } from './object-row.ts'

/**
 * Objects for the other thread: one buffer that is transferred, and flat arrays, as cloning a
 * buffer for each object costs more than storing it.
 */
export interface PackedObjects {
  /** Namespace, name, uid and resource version of each, one after the other. */
  readonly fields: readonly string[]
  readonly lengths: readonly number[]
  readonly bytes: Uint8Array<ArrayBuffer>
}

export function pack(objects: readonly ApiObject[]): PackedObjects {
  const bytes = new Uint8Array(lengthOf(objects.map((object) => object.bytes)))
  let at = 0
  for (const object of objects) {
    bytes.set(object.bytes, at)
    at += object.bytes.byteLength
  }
  return {
    fields: objects.flatMap(({ namespace, name, uid, resourceVersion }) => [
      namespace,
      name,
      uid,
      resourceVersion,
    ]),
    lengths: objects.map((object) => object.bytes.byteLength),
    bytes,
  }
}

/** The objects; their bytes are slices of the one buffer. */
export function unpack({ fields, lengths, bytes }: PackedObjects): ApiObject[] {
  let at = 0
  return lengths.map((length, index) => {
    const [namespace = '', name = '', uid = '', resourceVersion = ''] = fields.slice(
      index * 4,
      index * 4 + 4,
    )
    at += length
    return { namespace, name, uid, resourceVersion, bytes: bytes.subarray(at - length, at) }
  })
}

/** Namespace and name. */
export type NamePair = readonly [string, string]

/** Objects of a list that is still being read. */
export interface Stage {
  readonly kind: 'stage'
  readonly collection: CollectionAddress
  readonly replacement: number
  readonly objects: PackedObjects
}

/** Makes the staged objects the members of the collection, and removes the others. */
export interface CommitList {
  readonly kind: 'commit-list'
  readonly collection: CollectionAddress
  readonly replacement: number
  /** Staged, but replaced or removed by later events. */
  readonly overtaken: readonly NamePair[]
  readonly removed: readonly NamePair[]
  readonly gvk: GVK
  readonly version: string
  /** The list's own version; later events may have advanced the collection. */
  readonly listed: string
  readonly extra: string
  readonly confirmedAt: number
  /** The collection missed a write: the events up to this list are not complete. */
  readonly afterMissedWrite: boolean
}

export interface Discard {
  readonly kind: 'discard'
  readonly collection: CollectionAddress
  readonly replacement: number
}

export interface Apply {
  readonly kind: 'apply'
  readonly collection: CollectionAddress
  /**
   * False: events apply only to records of single objects, as the collection cannot be kept up to
   * date.
   */
  readonly whole: boolean
  readonly types: readonly ObjectEvent['type'][]
  readonly objects: PackedObjects
  /** Whether to return the previous states. */
  readonly previous: boolean
  /** As `ApplyOptions.since`; '' where not given. */
  readonly since: string
  /** The newest version of the events and bookmarks; '' for none. */
  readonly version: string
  readonly confirmedAt: number
}

export interface Put {
  readonly kind: 'put'
  readonly confirmedAt: number
  readonly scope: ScopeKey
  readonly gvk: GVK
  readonly objects: PackedObjects
  /** Whether they replace newer ones, as `ObjectStore.putRestored` does. */
  readonly restored: boolean
}

/** As `ObjectStore.forget`; `below` is '' where no state is valid. */
export interface Forget {
  readonly kind: 'forget'
  readonly scope: ScopeKey
  readonly namespace: string
  readonly name: string
  readonly below: string
}

export interface PutDocument extends DocumentContent {
  readonly kind: 'document'
  readonly confirmedAt: number
  /** Identity, path, representation. */
  readonly key: readonly [string, string, string]
  readonly body: Uint8Array<ArrayBuffer>
}

/**
 * An object whose bytes cannot be read: the row of its body, and which object it was, as rows are
 * used again.
 */
export type DamagedObject = Pick<ObjectRow, 'id' | 'namespace' | 'name' | 'resourceVersion'>

/** Removes a damaged object, and marks its collections as incomplete. */
export interface Quarantine {
  readonly kind: 'quarantine'
  readonly scope: ScopeKey
  readonly object: DamagedObject
}

/** Keeps a collection that missed a write from being served after a restart. */
export interface Invalidate {
  readonly kind: 'invalidate'
  readonly collection: CollectionAddress
}

/** A day has begun, counted from the epoch: unused identities are one day older. */
export interface CountDay {
  readonly kind: 'count-day'
  readonly day: number
}

export interface MarkUsed {
  readonly kind: 'mark-used'
  readonly identity: string
}

/** One step of deleting the data of an identity. */
export interface ForgetIdentity {
  readonly kind: 'forget-identity'
  readonly identity: string
  /** False: unless it was used again. */
  readonly used: boolean
}

/** Writes bytes that are free at once: a test whether the disk takes writes. */
export interface TrialWrite {
  readonly kind: 'trial'
  readonly bytes: number
}

/** The scope is about to be written to: for kubectl, or for another component. */
export interface MarkScope {
  readonly kind: 'mark-scope'
  readonly scope: ScopeKey
  readonly evictFirst: boolean
}

/** One step of eviction. */
export interface Evict {
  readonly kind: 'evict'
  /** Evict from this identity, which is beyond its quota; absent: the least needed records. */
  readonly of?: string
  /**
   * All objects that pods refer to, by `qualifiedName`: others may be evicted as unreferenced.
   * Absent: none of these may.
   */
  readonly referenced?: readonly string[]
}

export type Operation =
  | Stage
  | CommitList
  | Discard
  | Apply
  | Put
  | Forget
  | PutDocument
  | Quarantine
  | Invalidate
  | CountDay
  | MarkUsed
  | ForgetIdentity
  | TrialWrite
  | MarkScope
  | Evict

export interface OperationGroup {
  readonly operations: readonly Operation[]
  /** Bodies that became unreferenced up to this group are not being read. */
  readonly sweepUpTo: number
}

/** The previous states of an `apply`: positions among its objects, and the objects. */
export interface Displaced {
  readonly positions: readonly number[]
  readonly objects: PackedObjects
  readonly damaged: readonly DamagedObject[]
}

/**
 * In the order of eviction. `passing`: recorded for kubectl only; `idle`: of callers not seen for a
 * day; `gone`: referred to only by pods that are gone. `quota`: least recently used of an identity
 * beyond its quota, whatever the size of the database.
 */
export type EvictedKind =
  'passing' | 'idle' | 'document' | 'object' | 'collection' | 'gone' | 'quota'

/** The objects and documents that one step has evicted. */
export interface Evicted {
  readonly kind: EvictedKind
  /** Objects and documents. */
  readonly count: number
  /** Removed, or removed by further steps. */
  readonly collections?: readonly CollectionAddress[]
}

/** The result of one step, and whether another one may free more. */
export interface EvictionStep {
  readonly evicted?: Evicted
  readonly more: boolean
  /** The database is too large, and nothing else may be evicted. */
  readonly exhausted?: true
  /** The database is too large, and ending list reads would free enough. */
  readonly pinned?: true
}

export type OperationOutcome =
  | { readonly ok: true; readonly displaced?: Displaced; readonly step?: EvictionStep }
  | { readonly ok: false; readonly message: string; readonly errcode?: number }

/** The result of one group. */
export interface GroupDone {
  readonly outcomes: readonly OperationOutcome[]
  /** The number of this group, and of the unreferenced bodies that wait to be swept. */
  readonly group: number
  readonly unreferenced: number
  /** The database is nearly full. */
  readonly isNearFull: boolean
  /** Identities that have more than their quota. */
  readonly overQuota: readonly string[]
}

export interface WriterOptions {
  readonly path: string
  readonly sealingKey: Uint8Array
  readonly maxBytes: number | undefined
  /** Counters of the writer's work on the disk. */
  readonly diskWork: SharedDiskWork
  /** How long a commit may stay unsynced. */
  readonly syncWithinMs: number
}

/** The first message of the writer. */
export type WriterOpened =
  | { readonly ok: true; readonly resealed: boolean }
  | {
      readonly ok: false
      readonly unusable: boolean
      /** It was written by a later release. */
      readonly later?: boolean
      readonly message: string
      readonly errcode?: number
    }
