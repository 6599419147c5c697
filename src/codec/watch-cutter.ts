import type { GVK } from '../kube/gvk.ts'
import type { Encoding, Shape } from '../kube/media-type.ts'
import { JsonWatchCutter } from './json/watch-cutter.ts'
import { ProtobufWatchCutter } from './protobuf/watch-cutter.ts'
import type { WatchEvent } from './watch.ts'

/**
 * Cuts the body of one watch into its events as it comes, in chunks split anywhere. An object's bytes are in the form its list holds it
 * in. Both methods throw `MalformedBody`; after that the cutter is of no use.
 */
export interface WatchCutter {
  /** The kind of the latest object, a bookmark's too; before the first, and where there is none but an error, all empty. */
  readonly gvk: GVK
  /** The events that became whole, each with its frame; in JSON with the newline behind it. */
  push(chunk: Uint8Array): WatchEvent[]
  /** The body has ended, which it may between two frames only. */
  end(): void
}

/** A cutter for one body. Table exists in JSON only. */
export const watchCutter = (encoding: Encoding, shape: Shape): WatchCutter =>
  encoding === 'json' ? new JsonWatchCutter(shape) : new ProtobufWatchCutter()
