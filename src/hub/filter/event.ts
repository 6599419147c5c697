import { filteredEvent } from '../../api/codec/filtered-event.ts'
import { isObjectEvent, type WatchEvent } from '../../api/codec/watch.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { FilterChain } from './chain.ts'

/**
 * The event as the component gets it; `undefined`: no event. It depends on whether the component
 * has the previous object, as with the API server's selectors (apiserver pkg/storage/cacher): see
 * `filteredEvent`. Other events pass.
 */
export const filterEvent = (
  chain: FilterChain,
  gvk: GVK,
  encoding: Encoding,
  event: WatchEvent,
): WatchEvent | undefined =>
  isObjectEvent(event)
    ? filteredEvent(gvk, encoding, event, (object) => chain.apply(gvk, encoding, object))
    : event
