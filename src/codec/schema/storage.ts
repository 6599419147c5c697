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
  shown,
  string,
  time,
} from './notation.ts'
import { persistentVolumeSpec } from './persistent-volume.ts'

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

const volumeAttachmentSource = message('VolumeAttachmentSource', {
  persistentVolumeName: optional(string(1)),
  inlineVolumeSpec: optional(of(2, persistentVolumeSpec)),
})

const volumeAttachmentSpec = message('VolumeAttachmentSpec', {
  attacher: shown(string(1)),
  source: of(2, volumeAttachmentSource),
  nodeName: shown(string(3)),
})

const volumeError = message('VolumeError', {
  time: time(1),
  message: string(2),
  errorCode: optional(int32(3)),
})

const volumeAttachmentStatus = message('VolumeAttachmentStatus', {
  attached: shown(bool(1)),
  attachmentMetadata: map(string(2)),
  attachError: optional(of(3, volumeError)),
  detachError: optional(of(4, volumeError)),
})

export const volumeAttachment = message('VolumeAttachment', {
  metadata: of(1, objectMeta),
  spec: of(2, volumeAttachmentSpec),
  status: of(3, volumeAttachmentStatus),
})
