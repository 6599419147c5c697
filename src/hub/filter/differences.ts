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
import type { Chain } from './chain.ts'

export interface Compared {
  readonly held: CollectionSnapshot
  /** Of the objects. */
  readonly gvk: GVK
  readonly encoding: Encoding
  /** How far the one who is told has been told: what is newer comes as an event of its own. */
  readonly upTo: ResourceVersion
  /** The chains that it may have been shown objects under; not none. */
  readonly former: readonly Chain[]
  readonly now: Chain
}

/**
 * An object whose look has changed, by what it was last shown as: with its own version, as nothing
 * has happened to it.
 */
export type Difference = ObjectEvent

/**
 * What has changed for who was shown a collection under other states of its chain. In runs, between
 * which others have their turn; `settle` is waited for before objects are judged. Where it may have
 * been shown an object in several ways it is told of it unless it looks the same in all of them: a
 * look that is told twice does no harm.
 */
export async function* differences(
  { held, gvk, encoding, upTo, former, now }: Compared,
  settle: (objects: readonly ApiObject[]) => Promise<void>,
): AsyncGenerator<readonly Difference[]> {
  for (const batch of held.batches) {
    const told = batch.filter((object) => isTold(object, upTo))
    await settle(told)
    const changed = told.flatMap((object): readonly Difference[] => {
      const before = former.map((chain) => chain.look(gvk, encoding, object))
      return difference(before, now.look(gvk, encoding, object))
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
