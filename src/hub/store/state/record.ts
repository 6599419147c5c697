import type { ObjectEvent } from '../../../api/codec/watch.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import type { CollectionKey, Withdrawal } from '../store.ts'
import type { KeyInScope, Part, ScopeKey } from './address.ts'
import type { BodyMark, ObjectMark, PlacedMark } from './held.ts'

/** Events of a watch, in order; `version` is the newest of them and of bookmarks. */
export interface ApplyRecord {
  readonly kind: 'apply'
  readonly collection: CollectionKey
  readonly since: string
  readonly version: string
  readonly confirmedAt: number
  readonly types: readonly ObjectEvent['type'][]
  readonly objects: readonly ObjectMark[]
}

/**
 * A whole list, of which earlier records have brought the bodies. `holder`: to whom an API server
 * has given it, where it is kept once for all.
 */
export interface ListRecord {
  readonly kind: 'list'
  readonly collection: CollectionKey
  readonly gvk: GVK
  readonly version: string
  readonly extra: string
  readonly confirmedAt: number
  /** Absent: those that it has. */
  readonly objects?: readonly ObjectMark[] | undefined
  readonly holder?: string | undefined
}

export interface PutRecord {
  readonly kind: 'put'
  readonly scope: ScopeKey
  readonly gvk: GVK
  readonly confirmedAt: number
  readonly object: ObjectMark
  readonly holder?: string | undefined
}

/** As `ObjectStore.forget`. */
export interface ForgetRecord {
  readonly kind: 'forget'
  readonly scope: ScopeKey
  readonly object: readonly [namespace: string, name: string]
}

/** Removes what there is no room for, is damaged, missed a write, or is of another cluster. */
export interface EvictRecord {
  readonly kind: 'evict'
  readonly parts: readonly Part[]
  /** Of the write that they missed. */
  readonly version?: string
}

/** As `ObjectStore.withdraw`. */
export interface WithdrawRecord {
  readonly kind: 'withdraw'
  readonly holders: string
  readonly what: Withdrawal
}

/** What memory takes in its turn, whether or not the disk does. */
export type Removal = ForgetRecord | EvictRecord | WithdrawRecord

/** Bodies for a later record. */
export interface BodiesRecord {
  readonly kind: 'bodies'
  readonly scope?: ScopeKey
}

export interface CollectionSnapshot {
  readonly of: KeyInScope
  readonly gvk: GVK
  readonly version: string
  readonly changedAt: string
  readonly listedAt: string
  readonly extra: string
  readonly confirmedAt: number
  readonly holders: readonly string[]
  readonly objects: readonly ObjectMark[]
}

/**
 * The whole of a scope, for a start that does not read what came before. The bodies are those of
 * the objects, in order.
 */
export interface ScopeRecord {
  readonly kind: 'scope'
  readonly scope: ScopeKey
  readonly tombstones: readonly string[]
  readonly records: readonly CollectionSnapshot[]
  readonly collections: readonly CollectionSnapshot[]
}

/** What changes the state. `bodies`: those that it refers to. */
export type LogRecord = { readonly bodies?: readonly (BodyMark | PlacedMark)[] } & (
  ApplyRecord | ListRecord | PutRecord | Removal | BodiesRecord | ScopeRecord
)
