import type { GVK } from '../kube/gvk.ts'
import type { ListBatch, ListEnd } from './list.ts'
import type { WatchEvent } from './watch.ts'

/**
 * All that stands before the first object of a list, or, where there is none, before the end of the
 * objects.
 */
export interface ListHead {
  readonly gvk: GVK
  readonly bytes: readonly Uint8Array[]
}

/** What one chunk of a list brought. */
export interface DecodedChunk {
  /** Comes once, before or with the first batch. */
  readonly head?: ListHead
  readonly batch?: ListBatch
}

/**
 * The end of a list, and the kind it says it has: a JSON list may say it after its items, when the
 * head has long been cut.
 */
export interface DecodedListEnd extends ListEnd {
  readonly gvk: GVK
}

/**
 * Cuts the body of one list into its objects as it comes, in chunks split anywhere. Head, batches
 * (in JSON with a comma between two) and tail together are the body. Both methods throw
 * `MalformedBody`; after that the cutter is of no use.
 *
 * Where the kind stands after the items it is taken from the first of them (`Pump` makes a
 * `PumpList`), and where that does not say either, all waits for it, up to 16 MiB.
 */
export interface ListDecoder {
  push(chunk: Uint8Array): DecodedChunk
  /** The body has ended. */
  end(): DecodedListEnd
}

/**
 * Cuts the body of one watch into its events as it comes, in chunks split anywhere. An object's
 * bytes are in the form its list holds it in. Both methods throw `MalformedBody`; after that the
 * cutter is of no use.
 */
export interface WatchDecoder {
  /**
   * The kind of the latest object, a bookmark's too; before the first, and where there is none but
   * an error, all empty.
   */
  readonly gvk: GVK
  /** The events that became whole, each with its frame; in JSON with the newline behind it. */
  push(chunk: Uint8Array): WatchEvent[]
  /** The body has ended, which it may between two frames only. */
  end(): void
}
