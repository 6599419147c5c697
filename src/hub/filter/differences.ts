import { turn } from '../../base/clock.ts'
import type { ObjectEvent } from '../../api/codec/watch.ts'
import type { CollectionSnapshot } from '../../http/exchange/exchange.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import type { FilterChain } from './chain.ts'

export interface DifferencesOptions {
  readonly snapshot: CollectionSnapshot
  /** Of the objects, not of their list. */
  readonly gvk: GVK
  readonly encoding: Encoding
  /** The version that the client has: newer changes reach it as events of their own. */
  readonly upTo: ResourceVersion
  /** The chains under which the client may have received objects; at least one. */
  readonly before: readonly FilterChain[]
  readonly now: FilterChain
}

/**
 * An object on which the decision changed, with its own resource version, as the object itself did
 * not change.
 */
export type Difference = ObjectEvent

/**
 * The events that bring a client from earlier chain states to the current one. Yields in batches,
 * between which other work gets its turn, and awaits `settle` before it filters the objects of a
 * batch. Where the client may have received an object in several forms, an event is sent unless all
 * of them equal the current one: a repeated event does no harm.
 */
export async function* differences(
  { snapshot, gvk, encoding, upTo, before, now }: DifferencesOptions,
  settle: (objects: readonly ApiObject[]) => Promise<void>,
): AsyncGenerator<readonly Difference[]> {
  for (const batch of snapshot.batches) {
    const told = batch.filter((object) => isTold(object, upTo))
    await settle(told)
    const changed = told.flatMap((object): readonly Difference[] => {
      const shown = before.map((chain) => chain.apply(gvk, encoding, object))
      return difference(shown, now.apply(gvk, encoding, object))
    })
    if (changed.length > 0) yield changed
    await turn()
  }
}

function isTold({ resourceVersion: own }: ApiObject, upTo: ResourceVersion): boolean {
  const version = resourceVersion(own)
  return version !== undefined && compareVersions(version, upTo) <= 0
}

function difference(
  before: readonly (ApiObject | undefined)[],
  now: ApiObject | undefined,
): readonly Difference[] {
  const shown = before.find((look) => look !== undefined)
  if (now === undefined) return shown ? [{ type: 'DELETED', object: shown }] : []
  if (shown === undefined) return [{ type: 'ADDED', object: now }]
  const same = before.every((look) => look && Buffer.compare(look.bytes, now.bytes) === 0)
  if (same) return []
  return [{ type: before.includes(undefined) ? 'ADDED' : 'MODIFIED', object: now }]
}
