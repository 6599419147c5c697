import { objectMeta } from './meta.ts'
import { list, map, message, of, optional, quantity, shown, string, time } from './notation.ts'
import { persistentVolumeClaimSpec } from './volume.ts'

// kubernetes/api core/v1

const persistentVolumeClaimCondition = message('PersistentVolumeClaimCondition', {
  type: shown(string(1)),
  status: shown(string(2)),
  lastProbeTime: time(3),
  lastTransitionTime: time(4),
  reason: string(5),
  message: string(6),
})

const modifyVolumeStatus = message('ModifyVolumeStatus', {
  targetVolumeAttributesClassName: string(1),
  status: shown(string(2)),
})

const persistentVolumeClaimStatus = message('PersistentVolumeClaimStatus', {
  phase: string(1),
  accessModes: list(string(2)),
  capacity: map(quantity(3)),
  conditions: list(of(4, persistentVolumeClaimCondition)),
  allocatedResources: map(quantity(5)),
  allocatedResourceStatuses: map(string(7)),
  currentVolumeAttributesClassName: optional(string(8)),
  modifyVolumeStatus: optional(of(9, modifyVolumeStatus)),
})

export const persistentVolumeClaim = message('PersistentVolumeClaim', {
  metadata: of(1, objectMeta),
  spec: of(2, persistentVolumeClaimSpec),
  status: of(3, persistentVolumeClaimStatus),
})
