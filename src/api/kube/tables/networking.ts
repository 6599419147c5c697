import type { Json, JsonObject } from '../json.ts'
import { listAt, printed, textAt, valueAt } from '../json-at.ts'
import { labels, labelSelector, loadBalancer, nameOrDefault, shorten } from './cells.ts'
import {
  ageColumn,
  column,
  nameColumn,
  none,
  text,
  textOr,
  unset,
  wide,
  type Column,
} from './column.ts'

// Services and what leads to them.

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

function endpointAddresses(endpoints: JsonObject): Json {
  const all = listAt(endpoints, 'subsets').flatMap((subset) => {
    const addresses = listAt(subset, 'addresses').map((address) => textAt(address, 'ip'))
    const ports = listAt(subset, 'ports').map((port) => printed(valueAt(port, 'port')))
    if (ports.length === 0) return addresses
    return ports.flatMap((port) => addresses.map((ip) => `${bracketed(ip)}:${port}`))
  })
  return listAt(endpoints, 'subsets').length === 0 ? none : shorten(all, '')
}

const bracketed = (ip: string): string => (ip.includes(':') ? `[${ip}]` : ip)

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

const mostHosts = 3

/** The first hosts of an ingress; the number of others counts rules, as the API server does. */
function hosts(ingress: JsonObject): Json {
  const rules = listAt(ingress, 'spec', 'rules')
  const shown: string[] = []
  let more = false
  for (const rule of rules) {
    if (shown.length === mostHosts) more = true
    const host = textAt(rule, 'host')
    if (!more && host !== '') shown.push(host)
  }
  const text = shown.join(',') || '*'
  return more ? `${text} + ${rules.length - mostHosts} more...` : text
}

function classParameters(ingressClass: JsonObject): Json {
  const parameters = valueAt(ingressClass, 'spec', 'parameters')
  if (!parameters) return none
  const group = textAt(parameters, 'apiGroup')
  const kind = `${textAt(parameters, 'kind')}${group === '' ? '' : `.${group}`}`
  return `${kind}/${textAt(parameters, 'name')}`
}

function parentOf(address: JsonObject): Json {
  const parent = valueAt(address, 'spec', 'parentRef')
  if (!parent) return none
  const group = textAt(parent, 'group')
  const resource = `${textAt(parent, 'resource')}${group === '' ? '' : `.${group}`}`.toLowerCase()
  const namespace = textAt(parent, 'namespace')
  return [resource, ...(namespace === '' ? [] : [namespace]), textAt(parent, 'name')].join('/')
}

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
  endpoints: [nameColumn, column('Endpoints', endpointAddresses), ageColumn],
  'endpointslices.discovery.k8s.io': [
    nameColumn,
    column('AddressType', text('addressType')),
    column('Ports', slicePorts),
    column('Endpoints', sliceAddresses),
    ageColumn,
  ],
  'ingresses.networking.k8s.io': [
    nameColumn,
    column('Class', textOr(none, 'spec', 'ingressClassName')),
    column('Hosts', hosts),
    column('Address', loadBalancer),
    column('Ports', (ingress) => (listAt(ingress, 'spec', 'tls').length > 0 ? '80, 443' : '80')),
    ageColumn,
  ],
  'ingressclasses.networking.k8s.io': [
    { ...nameColumn, cell: nameOrDefault('ingressclass.kubernetes.io/is-default-class') },
    column('Controller', text('spec', 'controller')),
    column('Parameters', classParameters),
    ageColumn,
  ],
  'networkpolicies.networking.k8s.io': [
    nameColumn,
    column('Pod-Selector', labelSelector(none, 'spec', 'podSelector')),
    ageColumn,
  ],
  'servicecidrs.networking.k8s.io': [
    nameColumn,
    column('CIDRs', (object) => listAt(object, 'spec', 'cidrs').map(printed).join(',')),
    ageColumn,
  ],
  'ipaddresses.networking.k8s.io': [nameColumn, column('ParentRef', parentOf)],
}
