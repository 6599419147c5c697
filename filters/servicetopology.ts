import {
  showing,
  type Cursor,
  type Edit,
  type Element,
  type Filter,
  type FilterDefinition,
} from '../src/hub/filter/filter.ts'

const components = ['kube-proxy', 'coredns', 'nginx-ingress-controller']

/**
 * Keeps traffic local: of a service with the annotation `openyurt.io/topologyKeys` it keeps only
 * endpoints on this node or on nodes of its pool. It keeps the object even without endpoints, and
 * does not change hints.
 */
export const servicetopology: FilterDefinition<'nodeName' | 'poolNodes' | 'topologies'> = {
  name: 'servicetopology',
  rules: [
    { components, group: 'discovery.k8s.io', resources: ['endpointslices'], verbs: showing },
    { components, group: '', resources: ['endpoints'], verbs: showing },
  ],
  // More distant endpoints also work.
  onError: 'pass',
  withholds: false,
  needs: ['nodeName', 'poolNodes', 'topologies'],
  awaits: ['poolNodes', 'topologies'],
  create({ nodeName, poolNodes, topologies }) {
    if (!topologies || Object.keys(topologies).length === 0) return undefined
    const onNode = new Set([nodeName])
    const inPool = poolNodes ? new Set(poolNodes) : undefined
    return near((service) => {
      if (!Object.hasOwn(topologies, service)) return undefined
      switch (topologies[service]) {
        case 'kubernetes.io/hostname':
          return onNode
        case 'openyurt.io/nodepool':
        case 'kubernetes.io/zone':
          return inPool
        default:
          return undefined
      }
    })
  },
}

/**
 * `nodesOf`: the nodes whose endpoints of a service, by `namespace/name`, to keep; `undefined`:
 * all.
 */
const near =
  (nodesOf: (service: string) => ReadonlySet<string> | undefined): Filter =>
  (object) => {
    const service = serviceOf(object)
    const nodes = service === undefined ? undefined : nodesOf(`${object.namespace}/${service}`)
    if (!nodes) return 'leave'
    return object.kind === 'Endpoints' ? addressesOn(nodes) : endpointsOn(nodes, nodeOf(object))
  }

/** The service of an EndpointSlice or Endpoints. */
function serviceOf(object: Cursor): string | undefined {
  if (object.kind === 'Endpoints') return object.name
  return object.kind === 'EndpointSlice' ? object.label('kubernetes.io/service-name') : undefined
}

const endpointsOn = (nodes: ReadonlySet<string>, node: NodeOf): readonly Edit[] => [
  {
    op: 'each',
    path: ['endpoints'],
    change: (endpoint) => (isOn(nodes, node(endpoint)) ? 'leave' : 'remove'),
  },
]

/** An endpoint without a known node does not count as local. */
const isOn = (nodes: ReadonlySet<string>, node: unknown): boolean =>
  typeof node === 'string' && nodes.has(node)

type NodeOf = (endpoint: Element) => unknown

/** Reads the name of an endpoint's node. */
const nodeOf = ({ apiVersion }: Cursor): NodeOf =>
  apiVersion === 'discovery.k8s.io/v1beta1'
    ? (endpoint) =>
        endpoint.value(['topology', 'kubernetes.io/hostname']) ?? endpoint.value(['nodeName'])
    : (endpoint) => endpoint.value(['nodeName'])

/** A subset without addresses is removed, as the API server has none. */
const addressesOn = (nodes: ReadonlySet<string>): readonly Edit[] => [
  ...['addresses', 'notReadyAddresses'].map((addresses): Edit => ({
    op: 'each',
    path: ['subsets', '*', addresses],
    change: (address) => (isOn(nodes, address.value(['nodeName'])) ? 'leave' : 'remove'),
  })),
  {
    op: 'each',
    path: ['subsets'],
    change: (subset) =>
      subset.has(['addresses']) || subset.has(['notReadyAddresses']) ? 'leave' : 'remove',
  },
]
