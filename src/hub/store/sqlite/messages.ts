import { lengthOf } from '../../../base/bytes.ts'
import type { ObjectEvent } from '../../../api/codec/watch.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import type { DocumentContent } from '../store.ts'
import type { CollectionAddress, ScopeKey } from './address.ts'
import type { EvictionStep } from './eviction-step.ts'
import type { SharedDiskWork } from './disk-work.ts'
import type { ObjectRow } from './object-row.ts'

/**
 * Objects on their way to the other thread: one buffer that is handed over instead of copied, and
 * flat arrays, as cloning a buffer for each object costs more than storing it.
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

/** The objects again; their bytes are slices of the one buffer. */
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

/** Objects of a list that is not whole yet. */
export interface Stage {
  readonly kind: 'stage'
  readonly collection: CollectionAddress
  readonly replacement: number
  readonly objects: PackedObjects
}

/** Turns what was staged into members, and takes out what the list no longer has. */
export interface CommitList {
  readonly kind: 'commit-list'
  readonly collection: CollectionAddress
  readonly replacement: number
  /** Staged, but overtaken by events meanwhile, or gone again. */
  readonly overtaken: readonly NamePair[]
  readonly removed: readonly NamePair[]
  readonly gvk: GVK
  readonly version: string
  /** What the list itself said; events meanwhile may have moved the collection beyond. */
  readonly listed: string
  readonly extra: string
  readonly confirmedAt: number
  /** The collection missed a write: what happened up to this list is not known whole. */
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
   * False: only records of single objects follow, the collection holds nothing that could be kept
   * up to date.
   */
  readonly whole: boolean
  readonly types: readonly ObjectEvent['type'][]
  readonly objects: PackedObjects
  /** Whether to answer with what is displaced. */
  readonly previous: boolean
  /** The version at which their watch takes the collection to be; '' where it does not say. */
  readonly since: string
  /** The newest version that the events name; '' for none. */
  readonly version: string
  readonly confirmedAt: number
}

export interface Put {
  readonly kind: 'put'
  readonly confirmedAt: number
  readonly scope: ScopeKey
  readonly gvk: GVK
  readonly objects: PackedObjects
  /** Whether they take the place of newer ones, as `ObjectStore.putRestored` has it. */
  readonly restored: boolean
}

/** The cloud said that there is no such object. */
export interface Forget {
  readonly kind: 'forget'
  readonly scope: ScopeKey
  readonly namespace: string
  readonly name: string
}

export interface PutDocument extends DocumentContent {
  readonly kind: 'document'
  readonly confirmedAt: number
  /** Identity, URL, Accept. */
  readonly key: readonly [string, string, string]
  readonly body: Uint8Array<ArrayBuffer>
}

/**
 * An object whose bytes cannot be read: the row of its body, and which object it was, as rows are
 * used again.
 */
export type DamagedObject = Pick<ObjectRow, 'id' | 'namespace' | 'name' | 'resourceVersion'>

/**
 * An object is damaged: nobody holds it any more, and collections that did are known to have holes.
 */
export interface Quarantine {
  readonly kind: 'quarantine'
  readonly scope: ScopeKey
  readonly object: DamagedObject
}

/** A collection that missed a write is not to be served after a restart either. */
export interface Invalidate {
  readonly kind: 'invalidate'
  readonly collection: CollectionAddress
}

/** A day has begun, counted from the epoch: what nobody used is one day older. */
export interface CountDay {
  readonly kind: 'count-day'
  readonly day: number
}

export interface MarkUsed {
  readonly kind: 'mark-used'
  readonly identity: string
}

/** One step of forgetting everything kept for an identity that nobody used for long. */
export interface ForgetIdentity {
  readonly kind: 'forget-identity'
  readonly identity: string
}

/** So many bytes are written and left to be written over: whether the disk takes them. */
export interface TrialWrite {
  readonly kind: 'trial'
  readonly bytes: number
}

/** What lies in the scope is about to be recorded: for a person at a console, or for a program. */
export interface MarkScope {
  readonly kind: 'mark-scope'
  readonly scope: ScopeKey
  readonly interactive: boolean
}

/** One step of making room. */
export interface Evict {
  readonly kind: 'evict'
  /** Of what this identity has, which is more than its quota; absent: of what is least needed. */
  readonly of?: string
  /**
   * Of what pods refer to, all that is needed, as `placeNameOf` has it: the rest may go, too.
   * Absent: none of it.
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
  /** Bodies that became unreferenced up to this group are no longer read by anyone. */
  readonly sweepUpTo: number
}

/** What `apply` displaced: positions among its objects, and the objects. */
export interface Displaced {
  readonly positions: readonly number[]
  readonly objects: PackedObjects
  readonly damaged: readonly DamagedObject[]
}

export type OperationOutcome =
  | { readonly ok: true; readonly displaced?: Displaced; readonly step?: EvictionStep }
  | { readonly ok: false; readonly message: string; readonly errcode?: number }

/** Answer to one group. */
export interface GroupDone {
  readonly outcomes: readonly OperationOutcome[]
  /** Number of this group, and how many unreferenced bodies wait to be swept. */
  readonly group: number
  readonly unreferenced: number
  /** The database takes nearly as much as it may. */
  readonly isNearFull: boolean
  /** Identities that have more than their quota. */
  readonly overQuota: readonly string[]
}

export interface WriterOptions {
  readonly path: string
  readonly sealingKey: Uint8Array
  readonly maxBytes: number | undefined
  /** Where the writer counts what it does to the disk. */
  readonly diskWork: SharedDiskWork
  /** How long what was committed may be without a sync. */
  readonly syncWithinMs: number
}

/** What the writer says first. */
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
