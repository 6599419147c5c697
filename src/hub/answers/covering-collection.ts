import { objectKind } from '../../api/codec/list.ts'
import { selectionOf, type Selection } from '../../api/codec/selection.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { covers } from '../../api/kube/selectors.ts'
import { compareVersions, resourceVersion } from '../../api/kube/resource-version.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { collectionKey } from './keys.ts'
import type {
  CollectionKey,
  StoredCollection,
  ObjectStore,
  StoredList,
  StoredMember,
} from '../store/store.ts'

/** The stored collection that answers a list or watch: the requested one, or a wider one. */
export interface CoveringCollection {
  readonly representation: Representation
  readonly key: CollectionKey
  readonly resourceVersion: string
  /** The requested part of a wider collection; absent: all of it. */
  readonly selection?: Selection
}

/** A collection in one of the representations in which it is requested. */
export type WantedCollection = Pick<CoveringCollection, 'representation' | 'key'>

/** The collection of a list or watch in each of its representations. Throws `MalformedSelector`. */
export const wantedCollections = (
  exchange: Exchange,
  info: ResourceRequest,
): readonly WantedCollection[] =>
  exchange.representations.map((representation) => ({
    representation,
    key: collectionKey(exchange, info, representation),
  }))

/**
 * The first of the collections that is stored; else the newest collection of the same caller that
 * holds all of one. `undefined`: there is none.
 */
export function coveringCollection(
  wanted: readonly WantedCollection[],
  store: ObjectStore,
): CoveringCollection | undefined {
  for (const { representation, key } of wanted) {
    const version = store.version(key)
    if (version !== undefined) return { representation, key, resourceVersion: version }
  }
  for (const { representation, key } of wanted) {
    const source = widerCollection(key, representation, store)
    if (source) return source
  }
  return undefined
}

/** The newest stored collection of the same partition that holds all of `requested`. */
function widerCollection(
  requested: CollectionKey,
  representation: Representation,
  store: ObjectStore,
): CoveringCollection | undefined {
  const selection = selectionOf(requested.gvr, requested, representation)
  if (!selection) return undefined
  const [newest] = store
    .collections(requested.partition, requested.gvr, requested.namespace)
    .filter(({ key }) => covers(key, requested))
    .toSorted(newestFirst)
  return newest && { representation, ...newest, selection }
}

/** Versions that do not compare count as equal. */
function newestFirst(a: StoredCollection, b: StoredCollection): number {
  const [x, y] = [resourceVersion(a.resourceVersion), resourceVersion(b.resourceVersion)]
  return x !== undefined && y !== undefined ? compareVersions(y, x) : 0
}

/**
 * The objects of a covering collection that were requested, and of these those that are read.
 * `undefined` where they cannot be read.
 */
export function storedList(
  { representation, key, selection }: Omit<CoveringCollection, 'resourceVersion'>,
  store: ObjectStore,
  isRead?: (member: StoredMember) => boolean,
): StoredList | undefined {
  const stored = store.list(key, isRead)
  if (!stored || !selection) return stored
  const gvk = objectKind(stored.gvk)
  const selected = (object: ApiObject): boolean =>
    selection.selects(gvk, representation.encoding, object)
  return {
    ...stored,
    batches: Iterator.from(stored.batches).map(({ objects }) => ({
      objects: objects.filter(selected),
    })),
  }
}
