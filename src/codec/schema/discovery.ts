import { objectMeta } from './meta.ts'
import { objectReference } from './reference.ts'
import { bool, int32, list, map, message, of, optional, shown, string } from './notation.ts'

// kubernetes/api discovery/v1

const endpointConditions = message('EndpointConditions', {
  ready: optional(bool(1)),
  serving: optional(bool(2)),
  terminating: optional(bool(3)),
})

const forZone = message('ForZone', {
  name: shown(string(1)),
})

const forNode = message('ForNode', {
  name: shown(string(1)),
})

const endpointHints = message('EndpointHints', {
  forZones: list(of(1, forZone)),
  forNodes: list(of(2, forNode)),
})

const endpoint = message('Endpoint', {
  addresses: shown(list(string(1))),
  conditions: of(2, endpointConditions),
  hostname: optional(string(3)),
  targetRef: optional(of(4, objectReference)),
  deprecatedTopology: map(string(5)),
  nodeName: optional(string(6)),
  zone: optional(string(7)),
  hints: optional(of(8, endpointHints)),
})

const endpointPort = message('EndpointPort', {
  name: optional(string(1)),
  protocol: optional(string(2)),
  port: optional(int32(3)),
  appProtocol: optional(string(4)),
})

/** kubernetes/api discovery/v1beta1, which API servers before 1.25 have. */
const endpointBeta = message('Endpoint', {
  addresses: shown(list(string(1))),
  conditions: of(2, endpointConditions),
  hostname: optional(string(3)),
  targetRef: optional(of(4, objectReference)),
  topology: map(string(5)),
  nodeName: optional(string(6)),
  hints: optional(of(7, endpointHints)),
})

export const endpointSliceBeta = message('EndpointSlice', {
  metadata: of(1, objectMeta),
  addressType: shown(string(4)),
  endpoints: shown(list(of(2, endpointBeta))),
  ports: shown(list(of(3, endpointPort))),
})

export const endpointSlice = message('EndpointSlice', {
  metadata: of(1, objectMeta),
  addressType: shown(string(4)),
  endpoints: shown(list(of(2, endpoint))),
  ports: shown(list(of(3, endpointPort))),
})
