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
  /** The chain under which the client has received objects. */
  readonly before: FilterChain
  readonly now: FilterChain
}

/**
 * The events that bring a client from an earlier chain state to the current one, each with the
 * object's own resource version, as the object did not change. Yields in batches, between which
 * other work gets its turn.
 */
export async function* differences({
  snapshot,
  gvk,
  encoding,
  upTo,
  before,
  now,
}: DifferencesOptions): AsyncGenerator<readonly ObjectEvent[]> {
  for (const batch of snapshot.batches) {
    const changed = batch.flatMap((object): readonly ObjectEvent[] => {
      if (!isHeld(object, upTo)) return []
      const shown = before.apply(gvk, encoding, object)
      return difference(shown, now.apply(gvk, encoding, object))
    })
    if (changed.length > 0) yield changed
    await turn()
  }
}

function isHeld({ resourceVersion: own }: ApiObject, upTo: ResourceVersion): boolean {
  const version = resourceVersion(own)
  return version !== undefined && compareVersions(version, upTo) <= 0
}

function difference(
  shown: ApiObject | undefined,
  now: ApiObject | undefined,
): readonly ObjectEvent[] {
  if (now === undefined) return shown ? [{ type: 'DELETED', object: shown }] : []
  if (shown === undefined) return [{ type: 'ADDED', object: now }]
  return Buffer.compare(shown.bytes, now.bytes) === 0 ? [] : [{ type: 'MODIFIED', object: now }]
}
