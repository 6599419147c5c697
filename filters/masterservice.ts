import { showing, type Filter, type FilterDefinition } from '../src/hub/filter/filter.ts'

/**
 * Leads pods to the hub: the kubelet makes the variables KUBERNETES_SERVICE_HOST and _PORT of each
 * pod from the Service default/kubernetes, and is shown one with the hub's address in it.
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
  // Pods that find the API server itself work for as long as the node is online.
  onError: 'pass',
  needs: ['hubAddress'],
  // Where pods do not reach the hub, they go to the API server itself.
  create: ({ hubAddress }) => (hubAddress ? pointingTo(hubAddress) : undefined),
}

const pointingTo =
  ({ host, port }: { readonly host: string; readonly port: number }): Filter =>
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
