import {
  showing,
  type Edit,
  type Element,
  type Filter,
  type FilterDefinition,
} from '../src/hub/filter/filter.ts'
import type { HubAddress } from '../src/hub/filter/inputs.ts'

/**
 * Makes pods use the hub that name the API server themselves: replaces KUBERNETES_SERVICE_HOST and
 * _PORT where a container sets them. For other containers masterservice is sufficient.
 */
export const serviceenvupdater: FilterDefinition<'hubAddress'> = {
  name: 'serviceenvupdater',
  rules: [{ components: ['kubelet'], group: '', resources: ['pods'], verbs: showing }],
  // Pods that use the API server itself work while the node is online.
  onError: 'pass',
  withholds: false,
  needs: ['hubAddress'],
  create: ({ hubAddress }) => (hubAddress ? pointingTo(hubAddress) : undefined),
}

/** yurthub skips the last two. */
const kindsOfContainers = ['containers', 'initContainers', 'ephemeralContainers']

function pointingTo({ host, port }: HubAddress): Filter {
  const values = new Map([
    ['KUBERNETES_SERVICE_HOST', host],
    ['KUBERNETES_SERVICE_PORT', String(port)],
  ])
  const change = (variable: Element): 'leave' | readonly Edit[] => {
    const value = values.get(String(variable.value(['name'])))
    // A value from another source differs from the Service on purpose.
    if (value === undefined || variable.has(['valueFrom'])) return 'leave'
    return variable.value(['value']) === value ? 'leave' : [{ op: 'set', path: ['value'], value }]
  }
  const edits = kindsOfContainers.map((containers): Edit => {
    return { op: 'each', path: ['spec', containers, '*', 'env'], change }
  })
  return (pod) => (pod.kind === 'Pod' && pod.mentions('KUBERNETES_SERVICE_') ? edits : 'leave')
}
