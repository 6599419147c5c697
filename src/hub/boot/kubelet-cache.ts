import { objectKind } from '../../api/codec/list.ts'
import type { EncodedObject } from '../../api/codec/object.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { pods } from '../../api/kube/resources.ts'
import { canonicalFieldSelector } from '../../api/kube/selectors.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import { coveringCollection, storedList } from '../answers/covering-collection.ts'
import type { CollectionKey, ObjectStore, StoredMember } from '../store/store.ts'
import { documentAt, documentResource } from '../store/document.ts'

/** An object in the encoding in which the kubelet read it. */
export interface CachedObject extends EncodedObject {
  /**
   * When an API server last confirmed it, accurate to some minutes, in milliseconds since the
   * epoch; 0: not known.
   */
  readonly confirmedAt: number
}

export interface CachedCollection {
  readonly encoding: Encoding
  /** Of its objects. */
  readonly gvk: GVK
  /** When an API server last confirmed it, in milliseconds since the epoch. */
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

/** The records that this node's kubelet can read offline now. */
export interface KubeletCache {
  /** The encodings that the kubelet accepts, most preferred first. */
  readonly encodings: readonly Encoding[]
  /** `undefined`: never listed, or not to be served. `isRead`: of which objects; absent: of all. */
  collection(
    query: CollectionQuery,
    isRead?: (member: StoredMember) => boolean,
  ): CachedCollection | undefined
  /** 'absent': an API server has answered that it does not exist; `undefined`: not known. */
  object(gvr: GVR, namespace: string, name: string): CachedObject | 'absent' | undefined
  /** Stored documents of the node: discovery and the like. */
  documents(): readonly CachedDocument[]
  /** The body of one of these; `undefined`: it is not stored any more, or damaged. */
  document(of: Pick<CachedDocument, 'url' | 'accept'>): Uint8Array | undefined
}

/** A document as it was requested. */
export interface CachedDocument {
  readonly url: string
  readonly accept: string
  /** When an API server last sent it, accurate to some minutes, in milliseconds since the epoch. */
  readonly confirmedAt: number
}

/** The pods of a node, as its kubelet lists them. */
export const podsOf = (nodeName: string): CollectionQuery => ({
  gvr: pods,
  fieldSelector: `spec.nodeName=${nodeName}`,
})

/** Discovery without aggregation, and schemas, have one or two for each group and version. */
const mostDocuments = 512

/**
 * How much newer a list in JSON must be than the one in protobuf, so that the kubelet counts as
 * reconfigured to JSON.
 */
const changedOverMs = 10 * 60_000

/**
 * A kubelet's view of the store. Kubelets accept protobuf and JSON, or JSON only if so configured:
 * the representation of their pod list shows which. Another program that reads the pods as the node
 * for a moment does not change that.
 */
export function kubeletCache(store: ObjectStore, nodeName: string): KubeletCache {
  const [inProtobuf, inJson] = (['protobuf', 'json'] as const).map(
    (encoding) => store.list(keyOf(podsOf(nodeName), encoding))?.confirmedAt,
  )
  const onlyJson = (inJson ?? 0) > (inProtobuf === undefined ? 0 : inProtobuf + changedOverMs)
  const encodings: readonly Encoding[] = onlyJson ? ['json'] : ['protobuf', 'json']
  return {
    encodings,
    collection(query, isRead) {
      const wanted = encodings.map((encoding) => ({
        representation: objectRepresentation(encoding),
        key: keyOf(query, encoding),
      }))
      const found = coveringCollection(wanted, store)
      const stored = found && storedList(found, store, isRead)
      return (
        stored && {
          encoding: found.representation.encoding,
          gvk: objectKind(stored.gvk),
          confirmedAt: stored.confirmedAt,
          objects: Iterator.from(stored.batches).flatMap(({ objects }) => objects),
        }
      )
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
    documents: () =>
      store
        .partitions(documentResource, nodeIdentity)
        .flatMap(({ partition: { representation: accept }, names }) =>
          names.map(({ name: url, confirmedAt }) => ({ url, accept, confirmedAt })),
        )
        .slice(0, mostDocuments),
    document({ url, accept }) {
      const found = store.get(documentAt(nodeIdentity, url, accept))
      return typeof found === 'object' ? found.object.bytes : undefined
    },
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
