import { isPartial } from '../../api/codec/partial.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { chainWith, type FilterChain } from '../filter/chain.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { ObjectStore } from '../store/store.ts'

const encodings = ['json', 'protobuf'] as const

/**
 * A chain for metadata and rows of a Table, which have too little of an object for a filter to
 * decide by. It drops a part where `chain` drops the whole object, if that is stored at the same
 * version, for any caller. Parts of objects that are not stored pass, and none is edited.
 * Whole objects it filters as `chain` does.
 */
export function chainForPartial(
  chain: FilterChain,
  store: Pick<ObjectStore, 'get' | 'copyOf'>,
  exchange: Exchange,
  info: ResourceRequest,
): FilterChain {
  return chainWith(chain, {
    apply: (gvk, encoding, object) => {
      if (!isPartial(gvk)) return chain.apply(gvk, encoding, object)
      return passes(object, chain, store, exchange, info) ? object : undefined
    },
    prepare: (gvk, encoding, objects) =>
      isPartial(gvk) ? undefined : chain.prepare(gvk, encoding, objects),
  })
}

function passes(
  { namespace, name, uid, resourceVersion }: ApiObject,
  chain: FilterChain,
  store: Pick<ObjectStore, 'get' | 'copyOf'>,
  { identity }: Exchange,
  { gvr }: ResourceRequest,
): boolean {
  if (!chain.state.acts || name === '' || resourceVersion === '') return true
  for (const encoding of encodings) {
    const partition = { identity, representation: objectRepresentation(encoding).key }
    const stored = store.get(store.copyOf({ partition, gvr, namespace, name }))
    if (typeof stored !== 'object') continue
    const whole = stored.object
    if (whole.resourceVersion !== resourceVersion || whole.uid !== uid) continue
    return chain.apply(stored.gvk, encoding, whole) !== undefined
  }
  return true
}
