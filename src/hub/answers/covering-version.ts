import type { Exchange } from '../../http/exchange/exchange.ts'
import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
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
  return representations
    .flatMap((representation) =>
      store.collections({ identity, representation: representation.key }, gvr, namespace),
    )
    .filter(({ key }) => covers(key, named))
    .flatMap((covering) => resourceVersion(covering.resourceVersion) ?? [])
    .toSorted(compareVersions)
    .at(-1)
}
