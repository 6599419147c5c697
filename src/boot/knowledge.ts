import { objectKind } from '../codec/list.ts'
import type { GVK, GVR } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import { canonicalFieldSelector } from '../kube/selectors.ts'
import { objectForm } from '../request/form.ts'
import { node } from '../request/identity.ts'
import type { CollectionKey, ObjectStore, StoredList } from '../store/store.ts'
import { pods } from './resources.ts'

/** An object in the form in which the kubelet was given it. */
export interface Known {
  readonly encoding: Encoding
  readonly gvk: GVK
  readonly object: ApiObject
}

export interface KnownCollection {
  readonly encoding: Encoding
  /** Of its objects. */
  readonly gvk: GVK
  /** When the cloud last confirmed it, in milliseconds since the epoch. */
  readonly confirmedAt: number
  /** Iterated once. Throws a `StoreFailure` where it cannot be read. */
  readonly objects: Iterable<ApiObject>
}

export interface Place {
  readonly gvr: GVR
  /** Absent: all namespaces, or cluster-scoped. */
  readonly namespace?: string
  /** Absent: everything. */
  readonly fieldSelector?: string
}

/** What the kubelet of this node would be told now without a link. */
export interface Knowledge {
  /** How the kubelet wants its answers, most wanted first. */
  readonly encodings: readonly Encoding[]
  /** `undefined`: never listed, or unfit to be served. */
  collection(place: Place): KnownCollection | undefined
  /** 'absent': the cloud has said that there is none; `undefined`: nobody knows. */
  object(gvr: GVR, namespace: string, name: string): Known | 'absent' | undefined
}

/** The pods of a node, as its kubelet asks for them. */
export const podsOf = (nodeName: string): Place => ({
  gvr: pods,
  fieldSelector: `spec.nodeName=${nodeName}`,
})

/** For how long a list in JSON must have outlived the one in protobuf before the kubelet is taken to have changed over to JSON. */
const changedOverMs = 10 * 60_000

/**
 * What the store holds for the node. A kubelet takes protobuf unless it was told otherwise, and JSON in any case; which one it is shows in
 * what it was given when it asked for its pods, and whoever else looks at them as the node for a moment changes nothing about that.
 */
export function knowledgeIn(store: ObjectStore, nodeName: string): Knowledge {
  const listed = (place: Place, encoding: Encoding): StoredList | undefined =>
    store.list(keyOf(place, encoding))
  const [inProtobuf, inJson] = (['protobuf', 'json'] as const).map(
    (encoding) => listed(podsOf(nodeName), encoding)?.confirmedAt,
  )
  const onlyJson = (inJson ?? 0) > (inProtobuf === undefined ? 0 : inProtobuf + changedOverMs)
  const encodings: readonly Encoding[] = onlyJson ? ['json'] : ['protobuf', 'json']
  return {
    encodings,
    collection(place) {
      for (const encoding of encodings) {
        const found = listed(place, encoding)
        if (!found) continue
        const { gvk, confirmedAt, batches } = found
        return { encoding, gvk: objectKind(gvk), confirmedAt, objects: flat(batches) }
      }
      return undefined
    },
    object(gvr, namespace, name) {
      let absent: 'absent' | undefined
      for (const encoding of encodings) {
        const { audience } = keyOf({ gvr }, encoding)
        const found = store.get({ audience, gvr, namespace, name })
        if (found === 'absent') absent = found
        else if (found) return { encoding, ...found }
      }
      return absent
    },
  }
}

const keyOf = (
  { gvr, namespace, fieldSelector = '' }: Place,
  encoding: Encoding,
): CollectionKey => ({
  audience: { identity: node, form: objectForm(encoding).key },
  gvr,
  ...(namespace !== undefined && { namespace }),
  labelSelector: '',
  fieldSelector: canonicalFieldSelector(fieldSelector),
})

function* flat(batches: StoredList['batches']): Generator<ApiObject> {
  for (const batch of batches) yield* batch
}
