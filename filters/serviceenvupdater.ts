import {
  showing,
  type Edit,
  type Element,
  type Filter,
  type FilterDefinition,
} from '../src/hub/filter/filter.ts'
import type { HubAddress } from '../src/hub/filter/inputs.ts'

/**
 * Leads pods to the hub that name the API server themselves: where a container sets
 * KUBERNETES_SERVICE_HOST or _PORT, it gets the hub's. Those that do not set them get what
 * masterservice makes of the Service.
 */
export const serviceenvupdater: FilterDefinition<'hubAddress'> = {
  name: 'serviceenvupdater',
  rules: [{ components: ['kubelet'], group: '', resources: ['pods'], verbs: showing }],
  // Pods that find the API server itself work for as long as the node is online.
  onError: 'pass',
  needs: ['hubAddress'],
  create: ({ hubAddress }) => (hubAddress ? pointingTo(hubAddress) : undefined),
}

/** yurthub leaves out the last two. */
const kindsOfContainers = ['containers', 'initContainers', 'ephemeralContainers']

function pointingTo({ host, port }: HubAddress): Filter {
  const values = new Map([
    ['KUBERNETES_SERVICE_HOST', host],
    ['KUBERNETES_SERVICE_PORT', String(port)],
  ])
  const change = (variable: Element): 'leave' | readonly Edit[] => {
    const value = values.get(String(variable.value(['name'])))
    // What comes from somewhere else was meant to differ from the Service.
    if (value === undefined || variable.has(['valueFrom'])) return 'leave'
    return variable.value(['value']) === value ? 'leave' : [{ op: 'set', path: ['value'], value }]
  }
  const edits = kindsOfContainers.map((containers): Edit => {
    return { op: 'each', path: ['spec', containers, '*', 'env'], change }
  })
  return (pod) => (pod.kind === 'Pod' && pod.mentions('KUBERNETES_SERVICE_') ? edits : 'leave')
}
