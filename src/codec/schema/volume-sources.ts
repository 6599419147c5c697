import { localObjectReference } from './reference.ts'
import {
  bool,
  int32,
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

export const hostPathVolumeSource = message('HostPathVolumeSource', {
  path: shown(string(1)),
  type: optional(string(2)),
})

export const emptyDirVolumeSource = message('EmptyDirVolumeSource', {
  medium: string(1),
  sizeLimit: optional(quantity(2)),
})

export const gcePersistentDiskVolumeSource = message('GCEPersistentDiskVolumeSource', {
  pdName: shown(string(1)),
  fsType: string(2),
  partition: int32(3),
  readOnly: bool(4),
})

export const awsElasticBlockStoreVolumeSource = message('AWSElasticBlockStoreVolumeSource', {
  volumeID: shown(string(1)),
  fsType: string(2),
  partition: int32(3),
  readOnly: bool(4),
})

export const gitRepoVolumeSource = message('GitRepoVolumeSource', {
  repository: shown(string(1)),
  revision: string(2),
  directory: string(3),
})

export const nfsVolumeSource = message('NFSVolumeSource', {
  server: shown(string(1)),
  path: shown(string(2)),
  readOnly: bool(3),
})

export const iscsiVolumeSource = message('ISCSIVolumeSource', {
  targetPortal: shown(string(1)),
  iqn: shown(string(2)),
  lun: shown(int32(3)),
  iscsiInterface: string(4),
  fsType: string(5),
  readOnly: bool(6),
  portals: list(string(7)),
  chapAuthDiscovery: bool(8),
  chapAuthSession: bool(11),
  secretRef: optional(of(10, localObjectReference)),
  initiatorName: optional(string(12)),
})

export const glusterfsVolumeSource = message('GlusterfsVolumeSource', {
  endpoints: shown(string(1)),
  path: shown(string(2)),
  readOnly: bool(3),
})

export const rbdVolumeSource = message('RBDVolumeSource', {
  monitors: shown(list(string(1))),
  image: shown(string(2)),
  fsType: string(3),
  pool: string(4),
  user: string(5),
  keyring: string(6),
  secretRef: optional(of(7, localObjectReference)),
  readOnly: bool(8),
})

export const flexVolumeSource = message('FlexVolumeSource', {
  driver: shown(string(1)),
  fsType: string(2),
  secretRef: optional(of(3, localObjectReference)),
  readOnly: bool(4),
  options: map(string(5)),
})

export const cinderVolumeSource = message('CinderVolumeSource', {
  volumeID: shown(string(1)),
  fsType: string(2),
  readOnly: bool(3),
  secretRef: optional(of(4, localObjectReference)),
})

export const cephFSVolumeSource = message('CephFSVolumeSource', {
  monitors: shown(list(string(1))),
  path: string(2),
  user: string(3),
  secretFile: string(4),
  secretRef: optional(of(5, localObjectReference)),
  readOnly: bool(6),
})

export const flockerVolumeSource = message('FlockerVolumeSource', {
  datasetName: string(1),
  datasetUUID: string(2),
})

export const fcVolumeSource = message('FCVolumeSource', {
  targetWWNs: list(string(1)),
  lun: optional(int32(2)),
  fsType: string(3),
  readOnly: bool(4),
  wwids: list(string(5)),
})

export const azureFileVolumeSource = message('AzureFileVolumeSource', {
  secretName: shown(string(1)),
  shareName: shown(string(2)),
  readOnly: bool(3),
})

export const vsphereVirtualDiskVolumeSource = message('VsphereVirtualDiskVolumeSource', {
  volumePath: shown(string(1)),
  fsType: string(2),
  storagePolicyName: string(3),
  storagePolicyID: string(4),
})

export const quobyteVolumeSource = message('QuobyteVolumeSource', {
  registry: shown(string(1)),
  volume: shown(string(2)),
  readOnly: bool(3),
  user: string(4),
  group: string(5),
  tenant: string(6),
})

export const azureDiskVolumeSource = message('AzureDiskVolumeSource', {
  diskName: shown(string(1)),
  diskURI: shown(string(2)),
  cachingMode: optional(string(3)),
  fsType: optional(string(4)),
  readOnly: optional(bool(5)),
  kind: optional(string(6)),
})

export const photonPersistentDiskVolumeSource = message('PhotonPersistentDiskVolumeSource', {
  pdID: shown(string(1)),
  fsType: string(2),
})

export const portworxVolumeSource = message('PortworxVolumeSource', {
  volumeID: shown(string(1)),
  fsType: string(2),
  readOnly: bool(3),
})

export const scaleIOVolumeSource = message('ScaleIOVolumeSource', {
  gateway: shown(string(1)),
  system: shown(string(2)),
  secretRef: shown(optional(of(3, localObjectReference))),
  sslEnabled: bool(4),
  protectionDomain: string(5),
  storagePool: string(6),
  storageMode: string(7),
  volumeName: string(8),
  fsType: string(9),
  readOnly: bool(10),
})

export const storageOSVolumeSource = message('StorageOSVolumeSource', {
  volumeName: string(1),
  volumeNamespace: string(2),
  fsType: string(3),
  readOnly: bool(4),
  secretRef: optional(of(5, localObjectReference)),
})

export const csiVolumeSource = message('CSIVolumeSource', {
  driver: shown(string(1)),
  readOnly: optional(bool(2)),
  fsType: optional(string(3)),
  volumeAttributes: map(string(4)),
  nodePublishSecretRef: optional(of(5, localObjectReference)),
})

export const imageVolumeSource = message('ImageVolumeSource', {
  reference: string(1),
  pullPolicy: string(2),
})
