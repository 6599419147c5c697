import { qualifiedResource } from '../api/kube/gvk.ts'
import type { Json } from '../api/kube/json.ts'
import { listAt, objectAt, optionalTextAt, textAt, valueAt } from '../api/kube/json-at.ts'
import { ageColumn, ageOf, column, nameColumn, none, text, type Column } from './column.ts'
import type { Kind } from './kinds.ts'
import { printed, type KubeObject } from './object.ts'
import { podColumns } from './pod-columns.ts'

const size =
  (...path: string[]) =>
  (object: KubeObject) =>
    Object.keys(objectAt(object, ...path)).length

const dataSize = (object: KubeObject): Json => size('data')(object) + size('binaryData')(object)

function nodeStatus(node: KubeObject): Json {
  const ready = listAt(node, 'status', 'conditions').find(
    (c) => optionalTextAt(c, 'type') === 'Ready',
  )
  const word = !ready
    ? 'Unknown'
    : optionalTextAt(ready, 'status') === 'True'
      ? 'Ready'
      : 'NotReady'
  return valueAt(node, 'spec', 'unschedulable') === true ? `${word},SchedulingDisabled` : word
}

function nodeRoles(node: KubeObject): Json {
  const prefix = 'node-role.kubernetes.io/'
  const roles = Object.keys(objectAt(node, 'metadata', 'labels'))
    .filter((label) => label.startsWith(prefix))
    .map((label) => label.slice(prefix.length))
  return roles.toSorted().join(',') || none
}

const nodeAddress =
  (type: string) =>
  (node: KubeObject): Json =>
    optionalTextAt(
      listAt(node, 'status', 'addresses').find((entry) => optionalTextAt(entry, 'type') === type),
      'address',
    ) ?? none

const nodeInfo =
  (name: string) =>
  (node: KubeObject): Json =>
    textAt(node, 'status', 'nodeInfo', name) || '<unknown>'

const nodeColumns = [
  nameColumn,
  column('Status', nodeStatus),
  column('Roles', nodeRoles),
  ageColumn,
  column('Version', (node) => textAt(node, 'status', 'nodeInfo', 'kubeletVersion')),
  column('Internal-IP', nodeAddress('InternalIP'), 1),
  column('External-IP', nodeAddress('ExternalIP'), 1),
  column('OS-Image', nodeInfo('osImage'), 1),
  column('Kernel-Version', nodeInfo('kernelVersion'), 1),
  column('Container-Runtime', nodeInfo('containerRuntimeVersion'), 1),
]

function servicePorts(service: KubeObject): Json {
  const ports = listAt(service, 'spec', 'ports').map((port) => {
    const nodePort = valueAt(port, 'nodePort')
    const middle = typeof nodePort === 'number' && nodePort > 0 ? `:${nodePort}` : ''
    return `${printed(valueAt(port, 'port'))}${middle}/${optionalTextAt(port, 'protocol') ?? 'TCP'}`
  })
  return ports.join(',') || none
}

function externalIp(service: KubeObject): Json {
  if (optionalTextAt(service, 'spec', 'type') === 'ExternalName') {
    return optionalTextAt(service, 'spec', 'externalName') ?? none
  }
  const given = listAt(service, 'spec', 'externalIPs')
  const balanced = listAt(service, 'status', 'loadBalancer', 'ingress').map(
    (entry) => textAt(entry, 'ip') || textAt(entry, 'hostname') || '',
  )
  const all = [...balanced, ...given.map(printed)].join(',')
  return all || (optionalTextAt(service, 'spec', 'type') === 'LoadBalancer' ? '<pending>' : none)
}

function pairs(...path: string[]): (object: KubeObject) => Json {
  return (object) =>
    Object.entries(objectAt(object, ...path))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, value]) => `${key}=${printed(value)}`)
      .join(',') || none
}

const serviceColumns = [
  nameColumn,
  column('Type', text('spec', 'type')),
  column('Cluster-IP', text('spec', 'clusterIP')),
  column('External-IP', externalIp),
  column('Port(s)', servicePorts),
  ageColumn,
  column('Selector', pairs('spec', 'selector'), 1),
]

function endpointAddresses(endpoints: KubeObject): Json {
  const all = listAt(endpoints, 'subsets').flatMap((subset) => {
    const ports = listAt(subset, 'ports').map((port) => `:${printed(valueAt(port, 'port'))}`)
    return (ports.length > 0 ? ports : ['']).flatMap((port) =>
      listAt(subset, 'addresses').map((address) => `${textAt(address, 'ip')}${port}`),
    )
  })
  return shorten(all, none)
}

const shorten = (all: readonly string[], empty: string): string =>
  all.length === 0
    ? empty
    : all.slice(0, 3).join(',') + (all.length > 3 ? ` + ${all.length - 3} more...` : '')

const slicePorts = (slice: KubeObject): Json =>
  shorten(
    listAt(slice, 'ports').map((port) => printed(valueAt(port, 'port') ?? '*')),
    '<unset>',
  )

const sliceAddresses = (slice: KubeObject): Json =>
  shorten(
    listAt(slice, 'endpoints').flatMap((entry) => listAt(entry, 'addresses').map(printed)),
    '<unset>',
  )

function involved(event: KubeObject): Json {
  const kind = textAt(event, 'involvedObject', 'kind').toLowerCase()
  return `${kind}/${textAt(event, 'involvedObject', 'name')}`
}

const lastSeen = (event: KubeObject): Json =>
  ageOf(optionalTextAt(event, 'lastTimestamp') ?? optionalTextAt(event, 'eventTime'))

const count =
  (...path: string[]) =>
  (object: KubeObject): Json =>
    String(listAt(object, ...path).length)

const replicas =
  (...path: string[]) =>
  (object: KubeObject): Json =>
    valueAt(object, ...path) ?? 0

const deploymentColumns = [
  nameColumn,
  column('Ready', (object) => {
    const [ready, wanted] = [
      valueAt(object, 'status', 'readyReplicas'),
      valueAt(object, 'spec', 'replicas'),
    ]
    return `${printed(ready ?? 0)}/${printed(wanted ?? 1)}`
  }),
  column('Up-to-date', replicas('status', 'updatedReplicas')),
  column('Available', replicas('status', 'availableReplicas')),
  ageColumn,
]

const columnsByResource: Record<string, readonly Column[]> = {
  pods: podColumns,
  nodes: nodeColumns,
  services: serviceColumns,
  configmaps: [nameColumn, column('Data', dataSize), ageColumn],
  secrets: [nameColumn, column('Type', text('type')), column('Data', dataSize), ageColumn],
  namespaces: [nameColumn, column('Status', text('status', 'phase')), ageColumn],
  endpoints: [nameColumn, column('Endpoints', endpointAddresses), ageColumn],
  'endpointslices.discovery.k8s.io': [
    nameColumn,
    column('AddressType', text('addressType')),
    column('Ports', slicePorts),
    column('Endpoints', sliceAddresses),
    ageColumn,
  ],
  events: [
    column('Last Seen', lastSeen),
    column('Type', text('type')),
    column('Reason', text('reason')),
    column('Object', involved),
    column('Message', (event) => textAt(event, 'message').trim()),
    column('Name', (event) => event.metadata.name, 1),
  ],
  'leases.coordination.k8s.io': [
    nameColumn,
    column('Holder', (lease) => textAt(lease, 'spec', 'holderIdentity')),
    ageColumn,
  ],
  serviceaccounts: [nameColumn, column('Secrets', count('secrets')), ageColumn],
  'deployments.apps': deploymentColumns,
  'replicasets.apps': [
    nameColumn,
    column('Desired', replicas('spec', 'replicas')),
    column('Current', replicas('status', 'replicas')),
    column('Ready', replicas('status', 'readyReplicas')),
    ageColumn,
  ],
  'runtimeclasses.node.k8s.io': [nameColumn, column('Handler', text('handler')), ageColumn],
  'csinodes.storage.k8s.io': [nameColumn, column('Drivers', count('spec', 'drivers')), ageColumn],
  'customresourcedefinitions.apiextensions.k8s.io': [
    nameColumn,
    column('Created At', (definition) => definition.metadata.creationTimestamp),
  ],
}

/** The columns of a kind's Table; Name and Age by default. */
export const columnsOf = ({ gvr }: Kind): readonly Column[] =>
  columnsByResource[qualifiedResource(gvr)] ?? [nameColumn, ageColumn]
