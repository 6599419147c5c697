import { initialEventsEndAnnotation, type ApiObject } from '../kube/object.ts'
import { resourceVersion, type ResourceVersion } from '../kube/resource-version.ts'
import type { Status } from '../kube/status.ts'
import type { Cursor } from './element.ts'

/** One event of a watch. `frame`, if present, is the event as received, with its framing. */
export type WatchEvent = ObjectEvent | BookmarkEvent | ErrorEvent | UnreadEvent

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

/**
 * An event that changes nothing here, and is passed on as received: a bookmark without a resource
 * version, as some aggregated API servers send, or an event of a type that the API does not have.
 */
export interface UnreadEvent {
  readonly type: 'UNREAD'
  readonly frame: Uint8Array
}

/** The event of a bookmark, whose object a cursor reads. */
export function bookmarkEvent(object: Cursor, frame: Uint8Array): BookmarkEvent | UnreadEvent {
  const { resourceVersion } = object
  if (resourceVersion === '') return { type: 'UNREAD', frame }
  const initialEventsEnd = object.annotation(initialEventsEndAnnotation) === 'true'
  return { type: 'BOOKMARK', resourceVersion, initialEventsEnd, frame }
}

const eventTypes = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'])

export const isEventType = (type: string): type is Exclude<WatchEvent['type'], 'UNREAD'> =>
  eventTypes.has(type)

/** Whether an event shows an object. */
export const isObjectEvent = (event: WatchEvent): event is ObjectEvent =>
  event.type === 'ADDED' || event.type === 'MODIFIED' || event.type === 'DELETED'

/** The version of a watch after an event; `undefined` if the event has none. */
export function versionOf(event: WatchEvent | undefined): ResourceVersion | undefined {
  if (event === undefined) return undefined
  if (isObjectEvent(event)) return resourceVersion(event.object.resourceVersion)
  return event.type === 'BOOKMARK' ? resourceVersion(event.resourceVersion) : undefined
}

/** The version of a watch after events that arrived together; `undefined` if the last has none. */
export const versionAfter = (events: readonly WatchEvent[]): ResourceVersion | undefined =>
  versionOf(events.findLast(({ type }) => type !== 'UNREAD'))

/**
 * client-go treats a watch that ends within a second without an event as a failure, and lists again
 * (tools/cache/reflector.go). The hub ends no watch sooner. In milliseconds.
 */
export const minWatchMs = 1_100
