import { condition, objectMeta } from './meta.ts'
import { objectReference } from './reference.ts'
import {
  bool,
  int32,
  intOrString,
  list,
  map,
  message,
  of,
  optional,
  shown,
  string,
} from './notation.ts'

// kubernetes/api core/v1

const servicePort = message('ServicePort', {
  name: string(1),
  protocol: string(2),
  appProtocol: optional(string(6)),
  port: shown(int32(3)),
  targetPort: intOrString(4),
  nodePort: int32(5),
})

const clientIPConfig = message('ClientIPConfig', {
  timeoutSeconds: optional(int32(1)),
})

const sessionAffinityConfig = message('SessionAffinityConfig', {
  clientIP: optional(of(1, clientIPConfig)),
})

const serviceSpec = message('ServiceSpec', {
  ports: list(of(1, servicePort)),
  selector: map(string(2)),
  clusterIP: string(3),
  clusterIPs: list(string(18)),
  type: string(4),
  externalIPs: list(string(5)),
  sessionAffinity: string(7),
  loadBalancerIP: string(8),
  loadBalancerSourceRanges: list(string(9)),
  externalName: string(10),
  externalTrafficPolicy: string(11),
  healthCheckNodePort: int32(12),
  publishNotReadyAddresses: bool(13),
  sessionAffinityConfig: optional(of(14, sessionAffinityConfig)),
  ipFamilies: list(string(19)),
  ipFamilyPolicy: optional(string(17)),
  allocateLoadBalancerNodePorts: optional(bool(20)),
  loadBalancerClass: optional(string(21)),
  internalTrafficPolicy: optional(string(22)),
  trafficDistribution: optional(string(23)),
})

const portStatus = message('PortStatus', {
  port: shown(int32(1)),
  protocol: shown(string(2)),
  error: optional(string(3)),
})

const loadBalancerIngress = message('LoadBalancerIngress', {
  ip: string(1),
  hostname: string(2),
  ipMode: optional(string(3)),
  ports: list(of(4, portStatus)),
})

const loadBalancerStatus = message('LoadBalancerStatus', {
  ingress: list(of(1, loadBalancerIngress)),
})

const serviceStatus = message('ServiceStatus', {
  loadBalancer: of(1, loadBalancerStatus),
  conditions: list(of(2, condition)),
})

export const service = message('Service', {
  metadata: of(1, objectMeta),
  spec: of(2, serviceSpec),
  status: of(3, serviceStatus),
})

const endpointAddress = message('EndpointAddress', {
  ip: shown(string(1)),
  hostname: string(3),
  nodeName: optional(string(4)),
  targetRef: optional(of(2, objectReference)),
})

const endpointPort = message('EndpointPort', {
  name: string(1),
  port: shown(int32(2)),
  protocol: string(3),
  appProtocol: optional(string(4)),
})

const endpointSubset = message('EndpointSubset', {
  addresses: list(of(1, endpointAddress)),
  notReadyAddresses: list(of(2, endpointAddress)),
  ports: list(of(3, endpointPort)),
})

export const endpoints = message('Endpoints', {
  metadata: of(1, objectMeta),
  subsets: list(of(2, endpointSubset)),
})
