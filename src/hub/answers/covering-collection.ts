import { mapBatches } from '../../base/batches.ts'
import { objectKind } from '../../api/codec/list.ts'
import { selectionOf, type Selection } from '../../api/codec/selection.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { covers } from '../../api/kube/selectors.ts'
import { compareVersions, resourceVersion } from '../../api/kube/resource-version.ts'
import { namesObjects, type Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { collectionKey } from './keys.ts'
import type { CollectionKey, StoredCollection, ObjectStore, StoredList } from '../store/store.ts'
import { wholeOrNothing } from '../store/whole-or-nothing.ts'

/**
 * What a list or watch is answered from: the collection it asks for, or a wider one and what of it
 * was asked for.
 */
export interface CoveringCollection {
  readonly representation: Representation
  readonly key: CollectionKey
  readonly resourceVersion: string
  /** Absent: all of it. */
  readonly selection?: Selection
}

/**
 * Where the answer to a list or watch comes from: the collection that was asked for, in the first
 * of the client's forms in which it is stored; where it never was listed, the newest of those of
 * the same caller that surely hold all of it. `undefined`: nothing that is stored tells what is in
 * it. Throws `MalformedSelector`.
 */
export function coveringCollection(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
): CoveringCollection | undefined {
  for (const representation of exchange.representations) {
    const key = collectionKey(exchange, info, representation)
    const version = store.version(key)
    if (version !== undefined) return { representation, key, resourceVersion: version }
  }
  for (const representation of exchange.representations) {
    const source = widerCollection(
      collectionKey(exchange, info, representation),
      representation,
      store,
    )
    if (source) return source
  }
  return undefined
}

/**
 * The newest stored collection of the same caller that surely holds all that is asked for, and what
 * of it that is.
 */
export function widerCollection(
  asked: CollectionKey,
  representation: Representation,
  store: ObjectStore,
): CoveringCollection | undefined {
  if (!namesObjects(representation)) return undefined
  const selection = selectionOf(asked.gvr, asked, representation)
  if (!selection) return undefined
  const [newest] = store
    .collections(asked.partition, asked.gvr, asked.namespace)
    .filter(({ key }) => covers(key, asked))
    .toSorted(newestFirst)
  return newest && { representation, ...newest, selection }
}

/** Of versions that do not compare, none is the newer. */
function newestFirst(a: StoredCollection, b: StoredCollection): number {
  const [x, y] = [resourceVersion(a.resourceVersion), resourceVersion(b.resourceVersion)]
  return x !== undefined && y !== undefined ? compareVersions(y, x) : 0
}

/**
 * What of the stored collection was asked for. `undefined` where it cannot be read, or may not be
 * shown (`wholeOrNothing`).
 */
export function storedList(
  { representation, key, selection }: Omit<CoveringCollection, 'resourceVersion'>,
  store: ObjectStore,
): StoredList | undefined {
  const stored = wholeOrNothing(key.gvr, store.list(key))
  if (!stored || !selection) return stored
  const gvk = objectKind(stored.gvk)
  const selected = (object: ApiObject): boolean =>
    selection.selects(gvk, representation.encoding, object)
  return { ...stored, batches: mapBatches(stored.batches, (objects) => objects.filter(selected)) }
}
