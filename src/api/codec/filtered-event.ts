import type { GVK } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import { atVersion } from './edit.ts'
import type { ObjectEvent } from './watch.ts'

/**
 * What is shown of an event to someone who is shown of an object what `look` makes of it, if
 * anything: newly shown is ADDED, no longer shown is DELETED, with what was last shown of the
 * object, at the version of the change. `undefined`: nothing. The event and its frame stay the same
 * where nothing changes.
 *
 * Where what was before is not known, the event's type tells: an ADDED was not there before, so it
 * need not be taken back; after any other a DELETED is due, which does no harm to whoever was never
 * shown the object.
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
    // Whoever holds the object needs to see all of it go, ports and all, so that nothing of it is
    // left behind.
    const last = before ? atVersion(encoding, gvk, before, resourceVersion) : event.object
    return unlessSame(event, 'DELETED', last)
  }
  return unlessSame(event, wasWithheld ? 'ADDED' : event.type, shown)
}

function unlessSame(event: ObjectEvent, type: ObjectEvent['type'], object: ApiObject): ObjectEvent {
  return type === event.type && object === event.object ? event : { type, object }
}
