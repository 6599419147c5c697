import type { GVK } from '../kube/gvk.ts'
import type { ApiObject, ListMeta } from '../kube/object.ts'

/** A list as a stream, which no reader has to hold whole. */
export interface ListStream {
  /** Kind of the list itself (`PodList`, `PartialObjectMetadataList`). */
  readonly gvk: GVK
  /** All bytes before the first object. */
  readonly head: readonly Uint8Array[]
  /** Iterated once. Returning early discards the rest. */
  readonly batches: AsyncIterable<ListBatch>
  /**
   * Called after the last batch. Settles when the answer may end: for a recorded list, when it is
   * committed.
   */
  end(): Promise<ListEnd>
}

/** Objects that were completed by the same chunk. */
export interface ListBatch {
  readonly objects: readonly ApiObject[]
  /**
   * The bytes of the objects with their separators as received: in JSON without a comma before the
   * first or after the last, in protobuf with tags and lengths. Absent once an object was changed
   * or removed.
   */
  readonly bytes?: readonly Uint8Array[]
}

export interface ListEnd {
  readonly meta: ListMeta
  /**
   * Members of the list besides kind, apiVersion, metadata and the objects, as JSON text
   * `"key":value,...` ('' for none and for protobuf).
   */
  readonly extra: string
  /** All bytes after the last object. */
  readonly tail: readonly Uint8Array[]
}

/** The kind of a list's objects and of the events of its watch: `Pod` for a `PodList`. */
export const objectKind = (list: GVK): GVK =>
  list.kind.endsWith('List') ? { ...list, kind: list.kind.slice(0, -'List'.length) } : list

/** The reverse of `objectKind`, by the naming convention of the API. */
export const listKind = (object: GVK): GVK => ({ ...object, kind: `${object.kind}List` })
