import { objectMeta } from './meta.ts'
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
  time,
} from './notation.ts'

// kubernetes/api core/v1

const taint = message('Taint', {
  key: shown(string(1)),
  value: string(2),
  effect: shown(string(3)),
  timeAdded: optional(time(4)),
})

const configMapNodeConfigSource = message('ConfigMapNodeConfigSource', {
  namespace: shown(string(1)),
  name: shown(string(2)),
  uid: string(3),
  resourceVersion: string(4),
  kubeletConfigKey: shown(string(5)),
})

const nodeConfigSource = message('NodeConfigSource', {
  configMap: optional(of(2, configMapNodeConfigSource)),
})

const nodeSpec = message('NodeSpec', {
  podCIDR: string(1),
  podCIDRs: list(string(7)),
  providerID: string(3),
  unschedulable: bool(4),
  taints: list(of(5, taint)),
  configSource: optional(of(6, nodeConfigSource)),
  externalID: string(2),
})

const nodeCondition = message('NodeCondition', {
  type: shown(string(1)),
  status: shown(string(2)),
  lastHeartbeatTime: time(3),
  lastTransitionTime: time(4),
  reason: string(5),
  message: string(6),
})

const nodeAddress = message('NodeAddress', {
  type: shown(string(1)),
  address: shown(string(2)),
})

const daemonEndpoint = message('DaemonEndpoint', {
  Port: shown(int32(1)),
})

const nodeDaemonEndpoints = message('NodeDaemonEndpoints', {
  kubeletEndpoint: of(1, daemonEndpoint),
})

const nodeSwapStatus = message('NodeSwapStatus', {
  capacity: optional(int64(1)),
})

const nodeSystemInfo = message('NodeSystemInfo', {
  machineID: shown(string(1)),
  systemUUID: shown(string(2)),
  bootID: shown(string(3)),
  kernelVersion: shown(string(4)),
  osImage: shown(string(5)),
  containerRuntimeVersion: shown(string(6)),
  kubeletVersion: shown(string(7)),
  kubeProxyVersion: shown(string(8)),
  operatingSystem: shown(string(9)),
  architecture: shown(string(10)),
  swap: optional(of(11, nodeSwapStatus)),
})

const containerImage = message('ContainerImage', {
  names: shown(list(string(1))),
  sizeBytes: int64(2),
})

const attachedVolume = message('AttachedVolume', {
  name: shown(string(1)),
  devicePath: shown(string(2)),
})

const nodeConfigStatus = message('NodeConfigStatus', {
  assigned: optional(of(1, nodeConfigSource)),
  active: optional(of(2, nodeConfigSource)),
  lastKnownGood: optional(of(3, nodeConfigSource)),
  error: string(4),
})

const nodeRuntimeHandlerFeatures = message('NodeRuntimeHandlerFeatures', {
  recursiveReadOnlyMounts: optional(bool(1)),
  userNamespaces: optional(bool(2)),
})

const nodeRuntimeHandler = message('NodeRuntimeHandler', {
  name: shown(string(1)),
  features: optional(of(2, nodeRuntimeHandlerFeatures)),
})

const nodeFeatures = message('NodeFeatures', {
  supplementalGroupsPolicy: optional(bool(1)),
})

const nodeStatus = message('NodeStatus', {
  capacity: map(quantity(1)),
  allocatable: map(quantity(2)),
  phase: string(3),
  conditions: list(of(4, nodeCondition)),
  addresses: list(of(5, nodeAddress)),
  daemonEndpoints: of(6, nodeDaemonEndpoints),
  nodeInfo: of(7, nodeSystemInfo),
  images: list(of(8, containerImage)),
  volumesInUse: list(string(9)),
  volumesAttached: list(of(10, attachedVolume)),
  config: optional(of(11, nodeConfigStatus)),
  runtimeHandlers: list(of(12, nodeRuntimeHandler)),
  features: optional(of(13, nodeFeatures)),
  declaredFeatures: list(string(14)),
})

export const node = message('Node', {
  metadata: of(1, objectMeta),
  spec: of(2, nodeSpec),
  status: of(3, nodeStatus),
})
