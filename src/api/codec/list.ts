import type { GVK } from '../kube/gvk.ts'
import type { ApiObject, ListMeta } from '../kube/object.ts'

/** A list as it goes by. Nobody has to hold it whole. */
export interface ListStream {
  /** Kind of the list itself (`PodList`, `Table`, `PartialObjectMetadataList`). */
  readonly gvk: GVK
  /** All bytes before the first object. */
  readonly head: readonly Uint8Array[]
  /** Iterated once, to its end; returning early says that the rest is not wanted. */
  readonly batches: AsyncIterable<ListBatch>
  /**
   * To be called after the last batch; settles when what was streamed may be closed (recorded: when
   * it is committed).
   */
  end(): Promise<ListEnd>
}

/** Objects that became whole together. */
export interface ListBatch {
  readonly objects: readonly ApiObject[]
  /**
   * The objects with what stands between them, as they came: in JSON without a comma before the
   * first or after the last, in protobuf with their tags and lengths. Whoever changes or leaves out
   * an object leaves this out too.
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

/**
 * The kind of a list's objects, and of the events of its watch: a `PodList` holds Pods; a Table
 * shows rows of whatever it is of.
 */
export const objectKind = (list: GVK): GVK =>
  list.kind.endsWith('List') ? { ...list, kind: list.kind.slice(0, -'List'.length) } : list

/** The reverse of `objectKind`, by the convention all of the API follows. */
export const listKind = (object: GVK): GVK =>
  object.kind === 'Table' ? object : { ...object, kind: `${object.kind}List` }
