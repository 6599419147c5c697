import { covers, selectorOfName } from '../../api/kube/selectors.ts'
import {
  beginsWithState,
  namedBySelector,
  type ResourceRequest,
} from '../../api/request/request-info.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { coveringCollection } from '../answers/covering-collection.ts'
import { objectKey } from '../answers/keys.ts'
import type { CollectionKey, ObjectStore, StoredCollection } from '../store/store.ts'
import { textOfSelectors } from './recorded-decisions.ts'
import { everything, type Scope } from './scoped-decisions.ts'

/**
 * Whether the cache would answer a read only from a list that its caller may no longer have: the
 * list of a wider collection, the one that a watch begins with, or for a get of one that has the
 * object. An object that the caller has got by its name, and the events of a watch of the
 * collection itself, have their own decisions.
 */
export function isSourceWithdrawn(
  exchange: Exchange,
  info: ResourceRequest,
  store: ObjectStore,
  isListRefused: (scope: Scope) => boolean,
): boolean {
  if (info.verb === 'list' || info.verb === 'watch') {
    const source = coveringCollection(exchange, info, store)
    if (!source) return false
    const isOfList = source.selection !== undefined || beginsWithState(info)
    return isOfList && isListRefused(scopeOf(source.key))
  }
  if (info.verb !== 'get') return false
  const { name = '', namespace = '' } = info
  const keys = exchange.representations.map((each) => objectKey(exchange, info, each))
  const isOwn = keys.some(({ partition, gvr }) =>
    store.names(partition, gvr).some((each) => each.name === name && each.namespace === namespace),
  )
  if (isOwn) return false
  const held = exchange.representations.flatMap(({ key }) =>
    store.collections(
      { identity: exchange.identity, representation: key },
      info.gvr,
      info.namespace,
    ),
  )
  // Without a list of its own it is in the one that callers share, or in one that is incomplete.
  if (held.length === 0) return isListRefused(everything)
  const isRefused = ({ key }: StoredCollection): boolean => isListRefused(scopeOf(key))
  // A list with a selector may have the object, and may not.
  const named = { labelSelector: '', fieldSelector: selectorOfName(name) }
  return held.some(isRefused) && !held.some((each) => covers(each.key, named) && !isRefused(each))
}

const scopeOf = (key: CollectionKey): Scope => ({
  namespace: key.namespace ?? '',
  name: namedBySelector({ query: new URLSearchParams({ fieldSelector: key.fieldSelector }) }) ?? '',
  selectors: textOfSelectors(key),
})
