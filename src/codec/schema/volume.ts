import { labelSelector, objectMeta } from './meta.ts'
import {
  localObjectReference,
  objectFieldSelector,
  resourceFieldSelector,
  typedLocalObjectReference,
  typedObjectReference,
} from './reference.ts'
import {
  awsElasticBlockStoreVolumeSource,
  azureDiskVolumeSource,
  azureFileVolumeSource,
  cephFSVolumeSource,
  cinderVolumeSource,
  csiVolumeSource,
  emptyDirVolumeSource,
  fcVolumeSource,
  flexVolumeSource,
  flockerVolumeSource,
  gcePersistentDiskVolumeSource,
  gitRepoVolumeSource,
  glusterfsVolumeSource,
  hostPathVolumeSource,
  imageVolumeSource,
  iscsiVolumeSource,
  nfsVolumeSource,
  photonPersistentDiskVolumeSource,
  portworxVolumeSource,
  quobyteVolumeSource,
  rbdVolumeSource,
  scaleIOVolumeSource,
  storageOSVolumeSource,
  vsphereVirtualDiskVolumeSource,
} from './volume-sources.ts'
import {
  bool,
  inline,
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

const keyToPath = message('KeyToPath', {
  key: shown(string(1)),
  path: shown(string(2)),
  mode: optional(int32(3)),
})

const secretVolumeSource = message('SecretVolumeSource', {
  secretName: string(1),
  items: list(of(2, keyToPath)),
  defaultMode: optional(int32(3)),
  optional: optional(bool(4)),
})

const persistentVolumeClaimVolumeSource = message('PersistentVolumeClaimVolumeSource', {
  claimName: shown(string(1)),
  readOnly: bool(2),
})

const downwardAPIVolumeFile = message('DownwardAPIVolumeFile', {
  path: shown(string(1)),
  fieldRef: optional(of(2, objectFieldSelector)),
  resourceFieldRef: optional(of(3, resourceFieldSelector)),
  mode: optional(int32(4)),
})

const downwardAPIVolumeSource = message('DownwardAPIVolumeSource', {
  items: list(of(1, downwardAPIVolumeFile)),
  defaultMode: optional(int32(2)),
})

const configMapVolumeSource = message('ConfigMapVolumeSource', {
  localObjectReference: inline(1, localObjectReference),
  items: list(of(2, keyToPath)),
  defaultMode: optional(int32(3)),
  optional: optional(bool(4)),
})

const secretProjection = message('SecretProjection', {
  localObjectReference: inline(1, localObjectReference),
  items: list(of(2, keyToPath)),
  optional: optional(bool(4)),
})

const downwardAPIProjection = message('DownwardAPIProjection', {
  items: list(of(1, downwardAPIVolumeFile)),
})

const configMapProjection = message('ConfigMapProjection', {
  localObjectReference: inline(1, localObjectReference),
  items: list(of(2, keyToPath)),
  optional: optional(bool(4)),
})

const serviceAccountTokenProjection = message('ServiceAccountTokenProjection', {
  audience: string(1),
  expirationSeconds: optional(int64(2)),
  path: shown(string(3)),
})

const clusterTrustBundleProjection = message('ClusterTrustBundleProjection', {
  name: optional(string(1)),
  signerName: optional(string(2)),
  labelSelector: optional(of(3, labelSelector)),
  optional: optional(bool(5)),
  path: shown(string(4)),
})

const podCertificateProjection = message('PodCertificateProjection', {
  signerName: string(1),
  keyType: string(2),
  maxExpirationSeconds: optional(int32(3)),
  credentialBundlePath: string(4),
  keyPath: string(5),
  certificateChainPath: string(6),
  userAnnotations: map(string(7)),
})

const volumeProjection = message('VolumeProjection', {
  secret: optional(of(1, secretProjection)),
  downwardAPI: optional(of(2, downwardAPIProjection)),
  configMap: optional(of(3, configMapProjection)),
  serviceAccountToken: optional(of(4, serviceAccountTokenProjection)),
  clusterTrustBundle: optional(of(5, clusterTrustBundleProjection)),
  podCertificate: optional(of(6, podCertificateProjection)),
})

const projectedVolumeSource = message('ProjectedVolumeSource', {
  sources: shown(list(of(1, volumeProjection))),
  defaultMode: optional(int32(2)),
})

const volumeResourceRequirements = message('VolumeResourceRequirements', {
  limits: map(quantity(1)),
  requests: map(quantity(2)),
})

export const persistentVolumeClaimSpec = message('PersistentVolumeClaimSpec', {
  accessModes: list(string(1)),
  selector: optional(of(4, labelSelector)),
  resources: of(2, volumeResourceRequirements),
  volumeName: string(3),
  storageClassName: optional(string(5)),
  volumeMode: optional(string(6)),
  dataSource: optional(of(7, typedLocalObjectReference)),
  dataSourceRef: optional(of(8, typedObjectReference)),
  volumeAttributesClassName: optional(string(9)),
})

const persistentVolumeClaimTemplate = message('PersistentVolumeClaimTemplate', {
  metadata: of(1, objectMeta),
  spec: of(2, persistentVolumeClaimSpec),
})

const ephemeralVolumeSource = message('EphemeralVolumeSource', {
  volumeClaimTemplate: optional(of(1, persistentVolumeClaimTemplate)),
})

const volumeSource = message('VolumeSource', {
  hostPath: optional(of(1, hostPathVolumeSource)),
  emptyDir: optional(of(2, emptyDirVolumeSource)),
  gcePersistentDisk: optional(of(3, gcePersistentDiskVolumeSource)),
  awsElasticBlockStore: optional(of(4, awsElasticBlockStoreVolumeSource)),
  gitRepo: optional(of(5, gitRepoVolumeSource)),
  secret: optional(of(6, secretVolumeSource)),
  nfs: optional(of(7, nfsVolumeSource)),
  iscsi: optional(of(8, iscsiVolumeSource)),
  glusterfs: optional(of(9, glusterfsVolumeSource)),
  persistentVolumeClaim: optional(of(10, persistentVolumeClaimVolumeSource)),
  rbd: optional(of(11, rbdVolumeSource)),
  flexVolume: optional(of(12, flexVolumeSource)),
  cinder: optional(of(13, cinderVolumeSource)),
  cephfs: optional(of(14, cephFSVolumeSource)),
  flocker: optional(of(15, flockerVolumeSource)),
  downwardAPI: optional(of(16, downwardAPIVolumeSource)),
  fc: optional(of(17, fcVolumeSource)),
  azureFile: optional(of(18, azureFileVolumeSource)),
  configMap: optional(of(19, configMapVolumeSource)),
  vsphereVolume: optional(of(20, vsphereVirtualDiskVolumeSource)),
  quobyte: optional(of(21, quobyteVolumeSource)),
  azureDisk: optional(of(22, azureDiskVolumeSource)),
  photonPersistentDisk: optional(of(23, photonPersistentDiskVolumeSource)),
  projected: optional(of(26, projectedVolumeSource)),
  portworxVolume: optional(of(24, portworxVolumeSource)),
  scaleIO: optional(of(25, scaleIOVolumeSource)),
  storageos: optional(of(27, storageOSVolumeSource)),
  csi: optional(of(28, csiVolumeSource)),
  ephemeral: optional(of(29, ephemeralVolumeSource)),
  image: optional(of(30, imageVolumeSource)),
})

export const volume = message('Volume', {
  name: shown(string(1)),
  volumeSource: inline(2, volumeSource),
})
