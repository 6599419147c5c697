import { filteredEvent } from '../../api/codec/filtered-event.ts'
import type { WatchEvent } from '../../api/codec/watch.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { Chain } from './chain.ts'

/**
 * What a component is shown of an event, which depends on what it was shown of the object before,
 * as in the API server's own selectors (apiserver pkg/storage/cacher): see `shownEvent`.
 * `undefined`: nothing. Bookmarks and errors pass. `before` is the chain under which it was shown
 * what was before.
 */
export function judgeEvent(
  chain: Chain,
  gvk: GVK,
  encoding: Encoding,
  event: WatchEvent,
  before = chain,
): WatchEvent | undefined {
  if (event.type === 'BOOKMARK' || event.type === 'ERROR') return event
  const { previous } = event
  return filteredEvent(gvk, encoding, event, (object) =>
    (object === previous ? before : chain).look(gvk, encoding, object),
  )
}
