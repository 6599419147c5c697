import type { Exchange } from '../../http/exchange/exchange.ts'
import { provenIdentity } from '../../http/exchange/proven.ts'
import type { ClientCollection } from '../filter/chain-state-history.ts'
import { MalformedSelector } from '../../api/kube/selectors.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { selectorsOf } from '../answers/keys.ts'

/**
 * What a client is shown by a list or watch; `undefined` where that is not recorded. An unproven
 * caller counts under no identity of its own. Metadata and rows of a Table are filtered alike.
 */
export function clientCollectionOf(
  exchange: Exchange,
  info: ResourceRequest,
): ClientCollection | undefined {
  const { component, representations } = exchange
  const [representation] = representations
  if (!representation || info.name !== undefined) return undefined
  try {
    return {
      identity: provenIdentity(exchange),
      component,
      gvr: info.gvr,
      namespace: info.namespace,
      ...selectorsOf(info),
      ...(representation.projection !== 'object' && { isPartial: true }),
    }
  } catch (error) {
    if (error instanceof MalformedSelector) return undefined
    throw error
  }
}
