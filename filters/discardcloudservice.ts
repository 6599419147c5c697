import { showing, type FilterDefinition } from '../src/hub/filter/filter.ts'

/**
 * Services of the cloud's side by name, whatever their type: the tunnel's, of which nodes at the
 * edge are the other end.
 */
const discarded = new Set(['kube-system/x-tunnel-server-internal-svc'])

/**
 * Hides from kube-proxy the services that only the cloud's nodes can serve: load balancers that say
 * so, and OpenYurt's tunnel.
 */
export const discardcloudservice: FilterDefinition<never> = {
  name: 'discardcloudservice',
  rules: [{ components: ['kube-proxy'], group: '', resources: ['services'], verbs: showing }],
  // A service too many does less harm than one that is missing.
  onError: 'pass',
  needs: [],
  create: () => (service) => {
    if (discarded.has(`${service.namespace}/${service.name}`)) return 'withhold'
    return service.kind === 'Service' &&
      service.mentions('svc.openyurt.io') &&
      service.annotation('svc.openyurt.io/discard') === 'true' &&
      service.value(['spec', 'type']) === 'LoadBalancer'
      ? 'withhold'
      : 'leave'
  },
}
