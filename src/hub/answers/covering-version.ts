import type { Exchange } from '../../http/exchange/exchange.ts'
import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import { covers, selectorOfName } from '../../api/kube/selectors.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { ObjectStore } from '../store/store.ts'

/**
 * The newest version at which a caller was shown a collection that would have the object that it
 * asks for.
 */
export function newestCoveringVersion(
  { representations, identity }: Exchange,
  { gvr, namespace, name = '' }: ResourceRequest,
  store: ObjectStore,
): ResourceVersion | undefined {
  const named = { labelSelector: '', fieldSelector: selectorOfName(name) }
  return representations
    .flatMap((representation) =>
      store.collections({ identity, representation: representation.key }, gvr, namespace),
    )
    .filter(({ key }) => covers(key, named))
    .flatMap((told) => resourceVersion(told.resourceVersion) ?? [])
    .toSorted(compareVersions)
    .at(-1)
}
