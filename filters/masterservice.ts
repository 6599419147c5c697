import { showing, type Filter, type FilterDefinition } from '../src/hub/filter/filter.ts'
import type { HubAddress } from '../src/hub/filter/inputs.ts'

/**
 * Makes pods use the hub: the kubelet sets KUBERNETES_SERVICE_HOST and _PORT of each pod from the
 * Service default/kubernetes, and gets one with the hub's address.
 */
export const masterservice: FilterDefinition<'hubAddress'> = {
  name: 'masterservice',
  rules: [
    {
      components: ['kubelet'],
      group: '',
      resources: ['services'],
      verbs: showing,
      only: { namespace: 'default', name: 'kubernetes' },
    },
  ],
  // Pods that use the API server itself work while the node is online.
  onError: 'pass',
  withholds: false,
  needs: ['hubAddress'],
  // If pods cannot reach the hub, they use the API server itself.
  create: ({ hubAddress }) => (hubAddress ? pointingTo(hubAddress) : undefined),
}

const pointingTo =
  ({ host, port }: HubAddress): Filter =>
  (service) => {
    const { kind, namespace, name } = service
    if (kind !== 'Service' || namespace !== 'default' || name !== 'kubernetes') return 'leave'
    return [
      { op: 'set', path: ['spec', 'clusterIP'], value: host },
      { op: 'set', path: ['spec', 'clusterIPs'], value: [host] },
      {
        op: 'each',
        path: ['spec', 'ports'],
        change: (each) =>
          each.value(['name']) === 'https' ? [{ op: 'set', path: ['port'], value: port }] : 'leave',
      },
    ]
  }
