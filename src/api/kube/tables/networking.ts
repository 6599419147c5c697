import type { Json, JsonObject } from '../json.ts'
import { listAt, printed, textAt, valueAt } from '../json-at.ts'
import { labels, loadBalancer, shorten } from './cells.ts'
import { ageColumn, column, nameColumn, none, text, unset, wide, type Column } from './column.ts'

// Services and their endpoints.

function servicePorts(service: JsonObject): Json {
  const ports = listAt(service, 'spec', 'ports').map((port) => {
    const nodePort = Number(valueAt(port, 'nodePort') ?? 0)
    const middle = nodePort > 0 ? `:${nodePort}` : ''
    return `${printed(valueAt(port, 'port'))}${middle}/${textAt(port, 'protocol') || 'TCP'}`
  })
  return ports.join(',') || none
}

function clusterIp(service: JsonObject): Json {
  const [first] = listAt(service, 'spec', 'clusterIPs')
  return printed(first) || textAt(service, 'spec', 'clusterIP') || none
}

function externalIp(service: JsonObject): Json {
  const given = listAt(service, 'spec', 'externalIPs').map(printed)
  switch (textAt(service, 'spec', 'type')) {
    case 'ClusterIP':
    case 'NodePort':
      return given.join(',') || none
    case 'LoadBalancer': {
      const balanced = loadBalancer(service)
      return [...(balanced === '' ? [] : [balanced]), ...given].join(',') || '<pending>'
    }
    case 'ExternalName':
      return textAt(service, 'spec', 'externalName')
    default:
      return '<unknown>'
  }
}

const slicePorts = (slice: JsonObject): Json =>
  shorten(
    listAt(slice, 'ports').map(
      (port) => printed(valueAt(port, 'port')) || printed(valueAt(port, 'name')) || '*',
    ),
    unset,
  )

const sliceAddresses = (slice: JsonObject): Json =>
  shorten(
    listAt(slice, 'endpoints').flatMap((entry) => listAt(entry, 'addresses').map(printed)),
    unset,
  )

export const networkingColumns: Readonly<Record<string, readonly Column[]>> = {
  services: [
    nameColumn,
    column('Type', text('spec', 'type')),
    column('Cluster-IP', clusterIp),
    column('External-IP', externalIp),
    column('Port(s)', servicePorts),
    ageColumn,
    wide('Selector', labels('spec', 'selector')),
  ],
  'endpointslices.discovery.k8s.io': [
    nameColumn,
    column('AddressType', text('addressType')),
    column('Ports', slicePorts),
    column('Endpoints', sliceAddresses),
    ageColumn,
  ],
}
