import { showing, type FilterDefinition } from '../src/hub/filter/filter.ts'

/**
 * Services for nodes in the cloud, by name and of any type: the tunnel's, whose other end is on
 * nodes at the edge.
 */
const discarded = new Set(['kube-system/x-tunnel-server-internal-svc'])

/**
 * Withholds from kube-proxy the services that only nodes in the cloud can serve: load balancers
 * with the annotation, and OpenYurt's tunnel.
 */
export const discardcloudservice: FilterDefinition<never> = {
  name: 'discardcloudservice',
  rules: [{ components: ['kube-proxy'], group: '', resources: ['services'], verbs: showing }],
  // One service too many does less harm than one too few.
  onError: 'pass',
  needs: [],
  create: () => (service) => {
    if (service.kind !== 'Service') return 'leave'
    if (discarded.has(`${service.namespace}/${service.name}`)) return 'withhold'
    return service.mentions('svc.openyurt.io') &&
      service.annotation('svc.openyurt.io/discard') === 'true' &&
      service.value(['spec', 'type']) === 'LoadBalancer'
      ? 'withhold'
      : 'leave'
  },
}
