import { shownEvent } from '../codec/shown-event.ts'
import type { WatchEvent } from '../codec/watch.ts'
import type { Exchange, WatchReply } from '../exchange/exchange.ts'
import type { Chain } from '../filter/chain.ts'
import type { ApiObject } from '../kube/object.ts'
import { objectForm } from '../request/form.ts'
import { shared } from '../request/identity.ts'
import type { ResourceRequest } from '../request/request-info.ts'
import type { ObjectStore } from '../store/store.ts'

/** What is shown of an object by its metadata or by a row of a Table: that, or nothing. */
export type PartialLook = (object: ApiObject) => ApiObject | undefined

const encodings = ['json', 'protobuf'] as const

/**
 * Withholds what its filters withhold of the whole object, where that is stored at the same version, as the caller or all callers were given
 * it. Metadata alone would have filters guess at what they do not see, and a row hides most of it: what is not stored passes, and nothing is
 * edited.
 */
export function partialLook(
  chain: Chain,
  store: ObjectStore,
  { identity }: Exchange,
  { gvr }: ResourceRequest,
): PartialLook {
  return (object) => {
    const { namespace, name, uid, resourceVersion } = object
    if (name === '' || resourceVersion === '') return object
    for (const who of [identity, shared]) {
      for (const encoding of encodings) {
        const form = objectForm(encoding).key
        const found = store.get({ audience: { identity: who, form }, gvr, namespace, name })
        if (typeof found !== 'object') continue
        const whole = found.object
        if (whole.resourceVersion !== resourceVersion || whole.uid !== uid) continue
        return chain.look(found.gvk, encoding, whole) ? object : undefined
      }
    }
    return object
  }
}

/** The events of a watch of metadata or rows. */
export async function* partialEvents(
  { events, form, gvk }: WatchReply,
  look: () => PartialLook | undefined,
): AsyncGenerator<readonly WatchEvent[]> {
  for await (const group of events) {
    const { encoding } = form()
    const now = look()
    const shown = group.flatMap((event) =>
      !now || event.type === 'BOOKMARK' || event.type === 'ERROR'
        ? [event]
        : (shownEvent(gvk(), encoding, event, now) ?? []),
    )
    if (shown.length > 0) yield shown
  }
}
