import type { Exchange } from '../../http/exchange/exchange.ts'
import { provenIdentity } from '../../http/exchange/proven.ts'
import type { ClientCollection } from '../filter/chain-state-history.ts'
import { MalformedSelector } from '../../api/kube/selectors.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { selectorsOf } from '../answers/keys.ts'

/**
 * Who is shown what by the answer to a list or watch; `undefined` where that is not kept. Nobody
 * speaks for whom it has not proved to be. Metadata and rows of a Table are no more of an object to
 * whoever is shown them, and are judged alike.
 */
export function audienceOf(
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
