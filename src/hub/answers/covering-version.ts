import type { Exchange } from '../../http/exchange/exchange.ts'
import { newestVersion, type ResourceVersion } from '../../api/kube/resource-version.ts'
import { covers, selectorOfName } from '../../api/kube/selectors.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { ObjectStore } from '../store/store.ts'

/** The newest version of the caller's stored collections that would hold the requested object. */
export function newestCoveringVersion(
  { representations, identity }: Exchange,
  { gvr, namespace, name = '' }: ResourceRequest,
  store: ObjectStore,
): ResourceVersion | undefined {
  const named = { labelSelector: '', fieldSelector: selectorOfName(name) }
  const covering = representations
    .flatMap((representation) =>
      store.collections({ identity, representation: representation.key }, gvr, namespace),
    )
    .filter(({ key }) => covers(key, named))
  return newestVersion(covering.map(({ resourceVersion }) => resourceVersion))
}
