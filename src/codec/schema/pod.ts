import { container, ephemeralContainer, resourceRequirements } from './container.ts'
import { objectMeta } from './meta.ts'
import { podStatus } from './pod-status.ts'
import { localObjectReference } from './reference.ts'
import {
  affinity,
  podSchedulingGate,
  podSchedulingGroup,
  toleration,
  topologySpreadConstraint,
} from './scheduling.ts'
import { podSecurityContext } from './security.ts'
import { volume } from './volume.ts'
import {
  bool,
  int32,
  int64,
  list,
  map,
  message,
  of,
  optional,
  quantity,
  shown,
  string,
} from './notation.ts'

// kubernetes/api core/v1

const hostAlias = message('HostAlias', {
  ip: shown(string(1)),
  hostnames: list(string(2)),
})

const podDNSConfigOption = message('PodDNSConfigOption', {
  name: string(1),
  value: optional(string(2)),
})

const podDNSConfig = message('PodDNSConfig', {
  nameservers: list(string(1)),
  searches: list(string(2)),
  options: list(of(3, podDNSConfigOption)),
})

const podReadinessGate = message('PodReadinessGate', {
  conditionType: shown(string(1)),
})

const podOS = message('PodOS', {
  name: shown(string(1)),
})

const podResourceClaim = message('PodResourceClaim', {
  name: shown(string(1)),
  resourceClaimName: optional(string(3)),
  resourceClaimTemplateName: optional(string(4)),
})

const podSpec = message('PodSpec', {
  volumes: list(of(1, volume)),
  initContainers: list(of(20, container)),
  containers: shown(list(of(2, container))),
  ephemeralContainers: list(of(34, ephemeralContainer)),
  restartPolicy: string(3),
  terminationGracePeriodSeconds: optional(int64(4)),
  activeDeadlineSeconds: optional(int64(5)),
  dnsPolicy: string(6),
  nodeSelector: map(string(7)),
  serviceAccountName: string(8),
  serviceAccount: string(9),
  automountServiceAccountToken: optional(bool(21)),
  nodeName: string(10),
  hostNetwork: bool(11),
  hostPID: bool(12),
  hostIPC: bool(13),
  shareProcessNamespace: optional(bool(27)),
  securityContext: optional(of(14, podSecurityContext)),
  imagePullSecrets: list(of(15, localObjectReference)),
  hostname: string(16),
  subdomain: string(17),
  affinity: optional(of(18, affinity)),
  schedulerName: string(19),
  tolerations: list(of(22, toleration)),
  hostAliases: list(of(23, hostAlias)),
  priorityClassName: string(24),
  priority: optional(int32(25)),
  dnsConfig: optional(of(26, podDNSConfig)),
  readinessGates: list(of(28, podReadinessGate)),
  runtimeClassName: optional(string(29)),
  enableServiceLinks: optional(bool(30)),
  preemptionPolicy: optional(string(31)),
  overhead: map(quantity(32)),
  topologySpreadConstraints: list(of(33, topologySpreadConstraint)),
  setHostnameAsFQDN: optional(bool(35)),
  os: optional(of(36, podOS)),
  hostUsers: optional(bool(37)),
  schedulingGates: list(of(38, podSchedulingGate)),
  resourceClaims: list(of(39, podResourceClaim)),
  resources: optional(of(40, resourceRequirements)),
  hostnameOverride: optional(string(41)),
  schedulingGroup: optional(of(43, podSchedulingGroup)),
})

export const pod = message('Pod', {
  metadata: of(1, objectMeta),
  spec: of(2, podSpec),
  status: of(3, podStatus),
})
