import { HeaderList } from '../../../src/http/exchange/headers.ts'
import type { LoadBalancerContext } from '../../../src/hub/upstream/balance.ts'
import { componentOf } from '../../../src/api/request/component.ts'
import { nodeIdentity, type Identity } from '../../../src/api/request/identity.ts'
import { parseRequestInfo } from '../../../src/api/request/request-info.ts'

/** A request: of the node's kubelet for its pods, unless said otherwise. */
export function asker(
  userAgent = 'kubelet/v1.35.0',
  path = '/api/v1/pods',
  identity: Identity = nodeIdentity,
): LoadBalancerContext {
  return {
    identity,
    component: componentOf(userAgent),
    headers: new HeaderList(['User-Agent', userAgent]),
    info: parseRequestInfo('GET', path),
  }
}
