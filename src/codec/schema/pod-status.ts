import { resourceRequirements } from './container.ts'
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

const podCondition = message('PodCondition', {
  type: shown(string(1)),
  observedGeneration: int64(7),
  status: shown(string(2)),
  lastProbeTime: time(3),
  lastTransitionTime: time(4),
  reason: string(5),
  message: string(6),
})

const hostIP = message('HostIP', {
  ip: shown(string(1)),
})

const podIP = message('PodIP', {
  ip: shown(string(1)),
})

const containerStateWaiting = message('ContainerStateWaiting', {
  reason: string(1),
  message: string(2),
})

const containerStateRunning = message('ContainerStateRunning', {
  startedAt: time(1),
})

const containerStateTerminated = message('ContainerStateTerminated', {
  exitCode: shown(int32(1)),
  signal: int32(2),
  reason: string(3),
  message: string(4),
  startedAt: time(5),
  finishedAt: time(6),
  containerID: string(7),
})

const containerState = message('ContainerState', {
  waiting: optional(of(1, containerStateWaiting)),
  running: optional(of(2, containerStateRunning)),
  terminated: optional(of(3, containerStateTerminated)),
})

const imageVolumeStatus = message('ImageVolumeStatus', {
  imageRef: string(1),
})

const volumeStatus = message('VolumeStatus', {
  image: optional(of(1, imageVolumeStatus)),
})

const volumeMountStatus = message('VolumeMountStatus', {
  name: shown(string(1)),
  mountPath: shown(string(2)),
  readOnly: bool(3),
  recursiveReadOnly: optional(string(4)),
  volumeStatus: optional(of(5, volumeStatus)),
})

const linuxContainerUser = message('LinuxContainerUser', {
  uid: shown(int64(1)),
  gid: shown(int64(2)),
  supplementalGroups: list(int64(3)),
})

const containerUser = message('ContainerUser', {
  linux: optional(of(1, linuxContainerUser)),
})

const resourceHealth = message('ResourceHealth', {
  resourceID: shown(string(1)),
  health: string(2),
  message: optional(string(6)),
})

const resourceStatus = message('ResourceStatus', {
  name: shown(string(1)),
  resources: list(of(2, resourceHealth)),
})

const containerStatus = message('ContainerStatus', {
  name: shown(string(1)),
  state: of(2, containerState),
  lastState: of(3, containerState),
  ready: shown(bool(4)),
  restartCount: shown(int32(5)),
  image: shown(string(6)),
  imageID: shown(string(7)),
  containerID: string(8),
  started: optional(bool(9)),
  allocatedResources: map(quantity(10)),
  resources: optional(of(11, resourceRequirements)),
  volumeMounts: list(of(12, volumeMountStatus)),
  user: optional(of(13, containerUser)),
  allocatedResourcesStatus: list(of(14, resourceStatus)),
  stopSignal: optional(string(15)),
})

const podResourceClaimStatus = message('PodResourceClaimStatus', {
  name: shown(string(1)),
  resourceClaimName: optional(string(2)),
})

const containerExtendedResourceRequest = message('ContainerExtendedResourceRequest', {
  containerName: shown(string(1)),
  resourceName: shown(string(2)),
  requestName: shown(string(3)),
})

const podExtendedResourceClaimStatus = message('PodExtendedResourceClaimStatus', {
  requestMappings: shown(list(of(1, containerExtendedResourceRequest))),
  resourceClaimName: shown(string(2)),
})

const nodeAllocatableResourceClaimStatus = message('NodeAllocatableResourceClaimStatus', {
  resourceClaimName: shown(string(1)),
  containers: list(string(2)),
  resources: shown(map(quantity(3))),
})

export const podStatus = message('PodStatus', {
  observedGeneration: int64(17),
  phase: string(1),
  conditions: list(of(2, podCondition)),
  message: string(3),
  reason: string(4),
  nominatedNodeName: string(11),
  hostIP: string(5),
  hostIPs: list(of(16, hostIP)),
  podIP: string(6),
  podIPs: list(of(12, podIP)),
  startTime: optional(time(7)),
  initContainerStatuses: list(of(10, containerStatus)),
  containerStatuses: list(of(8, containerStatus)),
  qosClass: string(9),
  ephemeralContainerStatuses: list(of(13, containerStatus)),
  resize: string(14),
  resourceClaimStatuses: list(of(15, podResourceClaimStatus)),
  extendedResourceClaimStatus: optional(of(18, podExtendedResourceClaimStatus)),
  allocatedResources: map(quantity(19)),
  resources: optional(of(20, resourceRequirements)),
  nodeAllocatableResourceClaimStatuses: list(of(21, nodeAllocatableResourceClaimStatus)),
})
