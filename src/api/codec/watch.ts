import type { ApiObject } from '../kube/object.ts'
import { resourceVersion, type ResourceVersion } from '../kube/resource-version.ts'
import type { Status } from '../kube/status.ts'

/**
 * One event of a watch. `frame`, where present, is the event as it came, whole and with its
 * framing.
 */
export type WatchEvent = ObjectEvent | BookmarkEvent | ErrorEvent

export interface ObjectEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: ApiObject
  /** What the same collection held of it before, where a store knows. */
  readonly previous?: ApiObject
  readonly frame?: Uint8Array
}

export interface BookmarkEvent {
  readonly type: 'BOOKMARK'
  readonly resourceVersion: string
  /** Whether it closes the initial events of a WatchList. */
  readonly initialEventsEnd: boolean
  readonly frame?: Uint8Array
}

export interface ErrorEvent {
  readonly type: 'ERROR'
  readonly status: Status
  readonly frame?: Uint8Array
}

/** The version that a watch is at after an event; `undefined`: the event names none. */
export function versionOf(event: WatchEvent | undefined): ResourceVersion | undefined {
  if (event === undefined || event.type === 'ERROR') return undefined
  return resourceVersion(
    event.type === 'BOOKMARK' ? event.resourceVersion : event.object.resourceVersion,
  )
}

/**
 * client-go takes a watch that ends within a second without an event for a failure, and lists again
 * (tools/cache/reflector.go): no watch is ended sooner, in milliseconds.
 */
export const minWatchMs = 1_100
