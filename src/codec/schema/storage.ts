import { objectMeta } from './meta.ts'
import { bool, int32, int64, list, message, of, optional, shown, string } from './notation.ts'

// kubernetes/api storage/v1

const volumeNodeResources = message('VolumeNodeResources', {
  count: optional(int32(1)),
})

const csiNodeDriver = message('CSINodeDriver', {
  name: shown(string(1)),
  nodeID: shown(string(2)),
  topologyKeys: shown(list(string(3))),
  allocatable: optional(of(4, volumeNodeResources)),
})

const csiNodeSpec = message('CSINodeSpec', {
  drivers: shown(list(of(1, csiNodeDriver))),
})

export const csiNode = message('CSINode', {
  metadata: of(1, objectMeta),
  spec: of(2, csiNodeSpec),
})

const tokenRequest = message('TokenRequest', {
  audience: shown(string(1)),
  expirationSeconds: optional(int64(2)),
})

const csiDriverSpec = message('CSIDriverSpec', {
  attachRequired: optional(bool(1)),
  podInfoOnMount: optional(bool(2)),
  volumeLifecycleModes: list(string(3)),
  storageCapacity: optional(bool(4)),
  fsGroupPolicy: optional(string(5)),
  tokenRequests: list(of(6, tokenRequest)),
  requiresRepublish: optional(bool(7)),
  seLinuxMount: optional(bool(8)),
  nodeAllocatableUpdatePeriodSeconds: optional(int64(9)),
  serviceAccountTokenInSecrets: optional(bool(10)),
  preventPodSchedulingIfMissing: optional(bool(11)),
})

export const csiDriver = message('CSIDriver', {
  metadata: of(1, objectMeta),
  spec: of(2, csiDriverSpec),
})
