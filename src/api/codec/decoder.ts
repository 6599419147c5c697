import type { GVK } from '../kube/gvk.ts'
import type { ApiObject } from '../kube/object.ts'
import type { ListBatch, ListEnd } from './list.ts'
import type { WatchEvent } from './watch.ts'

/**
 * The bytes before the first object of a list; before the end of the objects, if the list is empty.
 */
export interface ListHead {
  readonly gvk: GVK
  readonly bytes: readonly Uint8Array[]
}

/** What chunks of a list completed. */
export interface DecodedChunk {
  /** Present once, before or with the first batch. */
  readonly head?: ListHead
  readonly batch?: ListBatch
}

export function decodedChunk(
  head: ListHead | undefined,
  objects: readonly ApiObject[],
  bytes: readonly Uint8Array[],
): DecodedChunk {
  if (objects.length === 0) return head ? { head } : {}
  const batch = { objects, bytes }
  return head ? { head, batch } : { batch }
}

/**
 * The end of a list, and its kind: JSON may name the kind after the items, when the head has long
 * been returned.
 */
export interface DecodedListEnd extends ListEnd {
  readonly gvk: GVK
}

/**
 * Decodes the body of one list into its objects, from chunks split anywhere. Head, batches (in JSON
 * with a comma between two) and tail together are the body. Both methods throw `MalformedBody`; the
 * decoder is unusable after that.
 *
 * If JSON names the kind after the items, the decoder takes it from the first item (a `Pump` makes
 * a `PumpList`); a list whose first item names none either is malformed.
 */
export interface ListDecoder {
  /** The next chunks of the body. */
  push(chunks: readonly Uint8Array[]): DecodedChunk
  /** The body has ended. */
  end(): DecodedListEnd
}

/**
 * Decodes the body of one watch into its events, from chunks split anywhere. An object's bytes are
 * as its list holds them. Both methods throw `MalformedBody`; the decoder is unusable after that.
 */
export interface WatchDecoder {
  /**
   * The kind of the latest object, bookmarks included. All fields are empty before the first
   * object, and if the watch has only an error.
   */
  readonly gvk: GVK
  /**
   * The events that the chunk completed, each with its frame; in JSON with the newline after it.
   */
  push(chunk: Uint8Array): WatchEvent[]
  /** The body has ended. Throws `MalformedBody` inside a frame. */
  end(): void
}
