import { objectKind } from '../../api/codec/list.ts'
import { selectionOf } from '../../api/codec/selection.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { pods } from '../../api/kube/resources.ts'
import { canonicalFieldSelector, covers } from '../../api/kube/selectors.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import { nodeIdentity, sharedIdentity } from '../../api/request/identity.ts'
import type { CollectionKey, ObjectStore, StoredList } from '../store/store.ts'
import { wholeOrNothing } from '../store/whole-or-nothing.ts'

/** An object in the form in which the kubelet was given it. */
export interface CachedObject {
  readonly encoding: Encoding
  readonly gvk: GVK
  readonly object: ApiObject
  /**
   * When the cloud last confirmed it, to some minutes, in milliseconds since the epoch; 0 where
   * that is not known.
   */
  readonly confirmedAt: number
}

/** To be read to its end, or disposed of. */
export interface CachedCollection extends Disposable {
  readonly encoding: Encoding
  /** Of its objects. */
  readonly gvk: GVK
  /** When the cloud last confirmed it, in milliseconds since the epoch. */
  readonly confirmedAt: number
  /** Iterated once. Throws a `StoreFailure` where it cannot be read. */
  readonly objects: Iterable<ApiObject>
}

export interface CollectionQuery {
  readonly gvr: GVR
  /** Absent: all namespaces, or cluster-scoped. */
  readonly namespace?: string
  /** Absent: everything. */
  readonly fieldSelector?: string
}

/** What the kubelet of this node would be told now without a link. */
export interface KubeletCache {
  /** How the kubelet wants its answers, most wanted first. */
  readonly encodings: readonly Encoding[]
  /** `undefined`: never listed, or unfit to be served. */
  collection(query: CollectionQuery): CachedCollection | undefined
  /** 'absent': the cloud has said that there is none; `undefined`: nobody knows. */
  object(gvr: GVR, namespace: string, name: string): CachedObject | 'absent' | undefined
  /** Documents that the node was given: discovery and the like. */
  documents(): readonly CachedDocument[]
}

/** A document as it was asked for. */
export interface CachedDocument {
  readonly url: string
  readonly accept: string
  /** When the cloud last gave it, to some minutes, in milliseconds since the epoch. */
  readonly confirmedAt: number
}

/** The pods of a node, as its kubelet asks for them. */
export const podsOf = (nodeName: string): CollectionQuery => ({
  gvr: pods,
  fieldSelector: `spec.nodeName=${nodeName}`,
})

/** Discovery that is not aggregated has one for each group and version. */
const mostDocuments = 64

/**
 * For how long a list in JSON must have outlived the one in protobuf before the kubelet is taken to
 * have changed over to JSON.
 */
const changedOverMs = 10 * 60_000

/**
 * What the store holds for the node. A kubelet takes protobuf unless it was told otherwise, and
 * JSON in any case; which one it is shows in what it was given when it asked for its pods, and
 * whoever else looks at them as the node for a moment changes nothing about that. `mayShare` says
 * of which resources it may be answered from what all callers share.
 */
export function kubeletCache(
  store: ObjectStore,
  nodeName: string,
  mayShare: (gvr: GVR) => boolean,
): KubeletCache {
  const [inProtobuf, inJson] = (['protobuf', 'json'] as const).map((encoding) =>
    store.confirmedAt(keyOf(podsOf(nodeName), encoding)),
  )
  const onlyJson = (inJson ?? 0) > (inProtobuf === undefined ? 0 : inProtobuf + changedOverMs)
  const encodings: readonly Encoding[] = onlyJson ? ['json'] : ['protobuf', 'json']
  return {
    encodings,
    collection(query) {
      for (const find of [listedItself, wider]) {
        for (const encoding of encodings) {
          const found = find({ query, encoding, store, shares: mayShare(query.gvr) })
          if (found) return found
        }
      }
      return undefined
    },
    object(gvr, namespace, name) {
      let absent: 'absent' | undefined
      for (const encoding of encodings) {
        const { partition } = keyOf({ gvr }, encoding)
        const found = store.get({ partition, gvr, namespace, name })
        if (found === 'absent') absent = found
        else if (found) return { encoding, ...found }
      }
      return absent
    },
    documents: () => store.documents(nodeIdentity, mostDocuments),
  }
}

interface Search {
  readonly query: CollectionQuery
  readonly encoding: Encoding
  readonly store: ObjectStore
  readonly shares: boolean
}

function listedItself({ query, encoding, store }: Search): CachedCollection | undefined {
  const found = wholeOrNothing(query.gvr, store.list(keyOf(query, encoding)))
  if (!found) return undefined
  const { gvk, confirmedAt, batches } = found
  return {
    encoding,
    gvk: objectKind(gvk),
    confirmedAt,
    objects: flat(batches),
    [Symbol.dispose]: () => found[Symbol.dispose](),
  }
}

/** What was never listed itself is answered from what surely holds all of it. */
function wider({ query, encoding, store, shares }: Search): CachedCollection | undefined {
  const asked = keyOf(query, encoding)
  const { partition, gvr, namespace } = asked
  const selection = selectionOf(gvr, asked, objectRepresentation(encoding))
  if (!selection) return undefined
  const partitions = shares ? [partition, { ...partition, identity: sharedIdentity }] : [partition]
  const [newest, ...others] = partitions
    .flatMap((each) => store.collections(each, gvr, namespace))
    .filter(({ key }) => covers(key, asked))
    .flatMap(({ key }) => wholeOrNothing(gvr, store.list(key)) ?? [])
    .toSorted((a, b) => b.confirmedAt - a.confirmedAt)
  if (!newest) return undefined
  for (const other of others) other[Symbol.dispose]()
  const gvk = objectKind(newest.gvk)
  const selected = (object: ApiObject): boolean => selection.selects(gvk, encoding, object)
  const { confirmedAt, batches } = newest
  return {
    encoding,
    gvk,
    confirmedAt,
    objects: flat(batches, selected),
    [Symbol.dispose]: () => newest[Symbol.dispose](),
  }
}

const keyOf = (
  { gvr, namespace, fieldSelector = '' }: CollectionQuery,
  encoding: Encoding,
): CollectionKey => ({
  partition: { identity: nodeIdentity, representation: objectRepresentation(encoding).key },
  gvr,
  ...(namespace !== undefined && { namespace }),
  labelSelector: '',
  fieldSelector: canonicalFieldSelector(fieldSelector),
})

function* flat(
  batches: StoredList['batches'],
  selected: (object: ApiObject) => boolean = () => true,
): Generator<ApiObject> {
  for (const batch of batches) yield* batch.filter(selected)
}
