import type { CollectionAddress } from './address.ts'

/**
 * What is least needed, first: `passing` is what a person at a console looked at, `idle` that of
 * callers who have not been seen for a day, `gone` what only pods that are gone have referred to.
 * `quota` is what an identity itself used longest ago that has too much, whether there is room or
 * not.
 */
export type EvictedKind =
  'passing' | 'idle' | 'document' | 'object' | 'collection' | 'gone' | 'quota'

/** What one step took away. */
export interface Evicted {
  readonly kind: EvictedKind
  /** Objects and documents. */
  readonly count: number
  /** Are not there any more, or will not be after further steps. */
  readonly collections?: readonly CollectionAddress[]
}

/** Whether something was taken away, and whether another step may give more room. */
export interface EvictionStep {
  readonly evicted?: Evicted
  readonly more: boolean
  /** There is not enough room, and nothing left that may go. */
  readonly exhausted?: true
  /** There is not enough room, and enough would be given back if no list were being read. */
  readonly pinned?: true
}
