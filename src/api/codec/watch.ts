import type { ApiObject } from '../kube/object.ts'
import { resourceVersion, type ResourceVersion } from '../kube/resource-version.ts'
import type { Status } from '../kube/status.ts'

/** One event of a watch. `frame`, if present, is the event as received, with its framing. */
export type WatchEvent = ObjectEvent | BookmarkEvent | ErrorEvent

export interface ObjectEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: ApiObject
  /** The previous state in the same collection, if a store knows it. */
  readonly previous?: ApiObject
  readonly frame?: Uint8Array
}

export interface BookmarkEvent {
  readonly type: 'BOOKMARK'
  readonly resourceVersion: string
  /** Whether it ends the initial events of a WatchList. */
  readonly initialEventsEnd: boolean
  readonly frame?: Uint8Array
}

export interface ErrorEvent {
  readonly type: 'ERROR'
  readonly status: Status
  readonly frame?: Uint8Array
}

/** The version of a watch after an event; `undefined` if the event has none. */
export function versionOf(event: WatchEvent | undefined): ResourceVersion | undefined {
  if (event === undefined || event.type === 'ERROR') return undefined
  return resourceVersion(
    event.type === 'BOOKMARK' ? event.resourceVersion : event.object.resourceVersion,
  )
}

/**
 * client-go treats a watch that ends within a second without an event as a failure, and lists again
 * (tools/cache/reflector.go). The hub ends no watch sooner. In milliseconds.
 */
export const minWatchMs = 1_100
