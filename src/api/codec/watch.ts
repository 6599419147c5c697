import type { GVK } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import { initialEventsEndAnnotation, type ApiObject } from '../kube/object.ts'
import { resourceVersion, type ResourceVersion } from '../kube/resource-version.ts'
import type { Status } from '../kube/status.ts'
import { atVersion } from './edit.ts'
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
 * The event that a client receives if `look` filters its objects: an object that becomes visible is
 * ADDED; one that is no longer visible is DELETED, with its last visible state at the version of
 * the change. `undefined`: no event. Event and frame stay the same instance if nothing changes.
 *
 * Without the previous state the type decides. An ADDED object did not exist before, so no DELETED
 * is due. After any other type a DELETED is sent: it does no harm to a client that never received
 * the object.
 */
export function filteredEvent(
  gvk: GVK,
  encoding: Encoding,
  event: ObjectEvent,
  look: (object: ApiObject) => ApiObject | undefined,
): ObjectEvent | undefined {
  const before = event.previous && look(event.previous)
  const wasWithheld = event.previous !== undefined && before === undefined
  const shown = look(event.object)
  if (event.type === 'DELETED' || shown === undefined) {
    if (wasWithheld || (event.type === 'ADDED' && before === undefined)) return undefined
    if (shown) return unlessSame(event, 'DELETED', shown)
    const { resourceVersion } = event.object
    // The DELETED event carries the whole last state: a client removes by it all that it derived
    // from the object, such as ports.
    const last = before ? atVersion(encoding, gvk, before, resourceVersion) : event.object
    return unlessSame(event, 'DELETED', last)
  }
  return unlessSame(event, wasWithheld ? 'ADDED' : event.type, shown)
}

function unlessSame(event: ObjectEvent, type: ObjectEvent['type'], object: ApiObject): ObjectEvent {
  return type === event.type && object === event.object ? event : { type, object }
}

/**
 * client-go treats a watch that ends within a second without an event as a failure, and lists again
 * (tools/cache/reflector.go). The hub ends no watch sooner. In milliseconds.
 */
export const minWatchMs = 1_100
