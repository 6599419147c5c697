import { objectMeta } from './meta.ts'
import { nodeSelector, objectReference } from './reference.ts'
import {
  awsElasticBlockStoreVolumeSource,
  azureDiskVolumeSource,
  fcVolumeSource,
  flockerVolumeSource,
  gcePersistentDiskVolumeSource,
  hostPathVolumeSource,
  nfsVolumeSource,
  photonPersistentDiskVolumeSource,
  portworxVolumeSource,
  quobyteVolumeSource,
  vsphereVirtualDiskVolumeSource,
} from './volume-sources.ts'
import {
  bool,
  inline,
  int32,
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

// kubernetes/api core/v1: what a volume of the cluster has another message for than the volume of a
// pod, for its secret is in a namespace.

const secretReference = message('SecretReference', {
  name: string(1),
  namespace: string(2),
})

const glusterfsPersistentVolumeSource = message('GlusterfsPersistentVolumeSource', {
  endpoints: shown(string(1)),
  path: shown(string(2)),
  readOnly: bool(3),
  endpointsNamespace: optional(string(4)),
})

const rbdPersistentVolumeSource = message('RBDPersistentVolumeSource', {
  monitors: shown(list(string(1))),
  image: shown(string(2)),
  fsType: string(3),
  pool: string(4),
  user: string(5),
  keyring: string(6),
  secretRef: optional(of(7, secretReference)),
  readOnly: bool(8),
})

const iscsiPersistentVolumeSource = message('ISCSIPersistentVolumeSource', {
  targetPortal: shown(string(1)),
  iqn: shown(string(2)),
  lun: shown(int32(3)),
  iscsiInterface: string(4),
  fsType: string(5),
  readOnly: bool(6),
  portals: list(string(7)),
  chapAuthDiscovery: bool(8),
  chapAuthSession: bool(11),
  secretRef: optional(of(10, secretReference)),
  initiatorName: optional(string(12)),
})

const cinderPersistentVolumeSource = message('CinderPersistentVolumeSource', {
  volumeID: shown(string(1)),
  fsType: string(2),
  readOnly: bool(3),
  secretRef: optional(of(4, secretReference)),
})

const cephFSPersistentVolumeSource = message('CephFSPersistentVolumeSource', {
  monitors: shown(list(string(1))),
  path: string(2),
  user: string(3),
  secretFile: string(4),
  secretRef: optional(of(5, secretReference)),
  readOnly: bool(6),
})

const flexPersistentVolumeSource = message('FlexPersistentVolumeSource', {
  driver: shown(string(1)),
  fsType: string(2),
  secretRef: optional(of(3, secretReference)),
  readOnly: bool(4),
  options: map(string(5)),
})

const azureFilePersistentVolumeSource = message('AzureFilePersistentVolumeSource', {
  secretName: shown(string(1)),
  shareName: shown(string(2)),
  readOnly: bool(3),
  secretNamespace: shown(optional(string(4))),
})

const scaleIOPersistentVolumeSource = message('ScaleIOPersistentVolumeSource', {
  gateway: shown(string(1)),
  system: shown(string(2)),
  secretRef: shown(optional(of(3, secretReference))),
  sslEnabled: bool(4),
  protectionDomain: string(5),
  storagePool: string(6),
  storageMode: string(7),
  volumeName: string(8),
  fsType: string(9),
  readOnly: bool(10),
})

const localVolumeSource = message('LocalVolumeSource', {
  path: shown(string(1)),
  fsType: optional(string(2)),
})

const storageOSPersistentVolumeSource = message('StorageOSPersistentVolumeSource', {
  volumeName: string(1),
  volumeNamespace: string(2),
  fsType: string(3),
  readOnly: bool(4),
  secretRef: optional(of(5, objectReference)),
})

const csiPersistentVolumeSource = message('CSIPersistentVolumeSource', {
  driver: shown(string(1)),
  volumeHandle: shown(string(2)),
  readOnly: bool(3),
  fsType: string(4),
  volumeAttributes: map(string(5)),
  controllerPublishSecretRef: optional(of(6, secretReference)),
  nodeStageSecretRef: optional(of(7, secretReference)),
  nodePublishSecretRef: optional(of(8, secretReference)),
  controllerExpandSecretRef: optional(of(9, secretReference)),
  nodeExpandSecretRef: optional(of(10, secretReference)),
})

const persistentVolumeSource = message('PersistentVolumeSource', {
  gcePersistentDisk: optional(of(1, gcePersistentDiskVolumeSource)),
  awsElasticBlockStore: optional(of(2, awsElasticBlockStoreVolumeSource)),
  hostPath: optional(of(3, hostPathVolumeSource)),
  glusterfs: optional(of(4, glusterfsPersistentVolumeSource)),
  nfs: optional(of(5, nfsVolumeSource)),
  rbd: optional(of(6, rbdPersistentVolumeSource)),
  iscsi: optional(of(7, iscsiPersistentVolumeSource)),
  cinder: optional(of(8, cinderPersistentVolumeSource)),
  cephfs: optional(of(9, cephFSPersistentVolumeSource)),
  fc: optional(of(10, fcVolumeSource)),
  flocker: optional(of(11, flockerVolumeSource)),
  flexVolume: optional(of(12, flexPersistentVolumeSource)),
  azureFile: optional(of(13, azureFilePersistentVolumeSource)),
  vsphereVolume: optional(of(14, vsphereVirtualDiskVolumeSource)),
  quobyte: optional(of(15, quobyteVolumeSource)),
  azureDisk: optional(of(16, azureDiskVolumeSource)),
  photonPersistentDisk: optional(of(17, photonPersistentDiskVolumeSource)),
  portworxVolume: optional(of(18, portworxVolumeSource)),
  scaleIO: optional(of(19, scaleIOPersistentVolumeSource)),
  local: optional(of(20, localVolumeSource)),
  storageos: optional(of(21, storageOSPersistentVolumeSource)),
  csi: optional(of(22, csiPersistentVolumeSource)),
})

const volumeNodeAffinity = message('VolumeNodeAffinity', {
  required: optional(of(1, nodeSelector)),
})

export const persistentVolumeSpec = message('PersistentVolumeSpec', {
  capacity: map(quantity(1)),
  persistentVolumeSource: inline(2, persistentVolumeSource),
  accessModes: list(string(3)),
  claimRef: optional(of(4, objectReference)),
  persistentVolumeReclaimPolicy: string(5),
  storageClassName: string(6),
  mountOptions: list(string(7)),
  volumeMode: optional(string(8)),
  nodeAffinity: optional(of(9, volumeNodeAffinity)),
  volumeAttributesClassName: optional(string(10)),
})

const persistentVolumeStatus = message('PersistentVolumeStatus', {
  phase: string(1),
  message: string(2),
  reason: string(3),
  lastPhaseTransitionTime: optional(time(4)),
})

export const persistentVolume = message('PersistentVolume', {
  metadata: of(1, objectMeta),
  spec: of(2, persistentVolumeSpec),
  status: of(3, persistentVolumeStatus),
})
