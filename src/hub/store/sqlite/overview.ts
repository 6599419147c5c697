import { TimeSlices } from '../../../base/time-slices.ts'
import type { Identity } from '../../../api/request/identity.ts'
import type { RepresentationKey } from '../../../api/request/representation.ts'
import type { CollectionKey } from '../store.ts'
import { keyOf } from './address.ts'
import type { Collections } from './collections.ts'
import type { Connection } from './connection.ts'
import { latestOf } from './view.ts'

/** A stored collection, measured. */
export interface MeasuredCollection {
  readonly key: CollectionKey
  readonly resourceVersion: string
  /** As in `StoredList`. */
  readonly confirmedAt: number
  /** Whether it can be served, and none of its objects is known to be damaged. */
  readonly isWhole: boolean
  readonly objects: number
  /** Of the objects. */
  readonly bytes: number
}

/** The stored collections, as far as they were measured. */
export interface StoreOverview {
  readonly collections: readonly MeasuredCollection[]
  /** How many more are stored. */
  readonly omitted: number
}

/**
 * Measures the `most` collections that were confirmed last, in time slices, each as it is stored at
 * that moment. Does not count as a use of them. `undefined` where the store cannot be read.
 */
export async function overviewOf(
  connection: Connection,
  collections: Collections,
  most: number,
): Promise<StoreOverview | undefined> {
  const found = connection.read((reads) => ({
    heads: reads.heads(most),
    count: reads.collectionCount(),
  }))
  if (!found) return undefined
  const slices = new TimeSlices()
  const measured: MeasuredCollection[] = []
  for (const head of found.heads) {
    await slices.pause()
    const size = connection.read((reads) => reads.sizeOf(head.id))
    if (!size) return undefined
    const { address, version, confirmedAt, whole, hasDamage } = head
    const [identity, form, group, apiVersion, resource] = address.scope
    const state = collections.known(address)
    const damaged = hasDamage || collections.hasDamage(address)
    measured.push({
      key: keyOf(
        { identity: identity as Identity, representation: form as RepresentationKey },
        { group, version: apiVersion, resource },
        address,
      ),
      resourceVersion: version,
      confirmedAt: latestOf(confirmedAt, state),
      isWhole: whole && state?.unfit !== true && !damaged,
      ...size,
    })
  }
  return { collections: measured, omitted: Math.max(found.count - measured.length, 0) }
}
