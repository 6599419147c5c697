import { isIP } from 'node:net'
import { showing, type Filter, type FilterDefinition } from '../src/hub/filter/filter.ts'
import type { HubAddress } from '../src/hub/filter/inputs.ts'

/**
 * Redirects to the hub the traffic of pods to the ClusterIP of default/kubernetes: kube-proxy gets
 * the hub as the only endpoint. Pods dial the ClusterIP, so that the hub's certificate has to name
 * it. Slices of the other address family keep the cloud's endpoints.
 */
export const forwardkubesvctraffic: FilterDefinition<'hubAddress'> = {
  name: 'forwardkubesvctraffic',
  rules: [
    {
      components: ['kube-proxy'],
      group: 'discovery.k8s.io',
      resources: ['endpointslices'],
      verbs: showing,
      only: { namespace: 'default', name: 'kubernetes' },
    },
  ],
  // Pods that use the API server itself work while the node is online.
  onError: 'pass',
  withholds: false,
  needs: ['hubAddress'],
  create({ hubAddress }, warn) {
    if (!hubAddress?.forService) return undefined
    const family = isIP(hubAddress.host)
    if (family === 0) {
      warn(`forwardkubesvctraffic: does nothing, ${hubAddress.host} is no IP address`)
      return undefined
    }
    return pointingTo(hubAddress, `IPv${family}`)
  },
}

const pointingTo =
  ({ host, port }: HubAddress, family: string): Filter =>
  (slice) => {
    const { kind, namespace, name } = slice
    if (kind !== 'EndpointSlice' || namespace !== 'default' || name !== 'kubernetes') return 'leave'
    if (slice.value(['addressType']) !== family) return 'leave'
    return [
      {
        op: 'set',
        path: ['endpoints'],
        value: [{ addresses: [host], conditions: { ready: true } }],
      },
      {
        op: 'each',
        path: ['ports'],
        change: (each) =>
          each.value(['name']) === 'https' ? [{ op: 'set', path: ['port'], value: port }] : 'leave',
      },
    ]
  }
