import type { CollectionAddress } from './address.ts'

/**
 * In the order of eviction. `passing`: recorded for kubectl only; `idle`: of callers not seen for a
 * day; `gone`: referred to only by pods that are gone. `quota`: least recently used of an identity
 * beyond its quota, whatever the size of the database.
 */
export type EvictedKind =
  'passing' | 'idle' | 'document' | 'object' | 'collection' | 'gone' | 'quota'

/** What one step has evicted. */
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
