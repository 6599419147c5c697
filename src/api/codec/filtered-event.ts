import type { GVK } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import { atVersion } from './edit.ts'
import type { ObjectEvent } from './watch.ts'

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
