import type { Json, JsonObject } from '../json.ts'
import { listAt, printed, textAt, valueAt } from '../json-at.ts'
import { count, nameOrDefault } from './cells.ts'
import {
  ageColumn,
  boolean,
  column,
  integer,
  nameColumn,
  none,
  plainColumns,
  text,
  textOr,
  unset,
  wide,
  type Column,
} from './column.ts'

// Volumes, claims and drivers.

const modes = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
] as const

const accessModes = (object: JsonObject, ...path: string[]): string => {
  const all = listAt(object, ...path)
  return modes
    .filter(([mode]) => all.includes(mode))
    .map(([, short]) => short)
    .join(',')
}

const phase = (object: JsonObject): Json =>
  textAt(object, 'metadata', 'deletionTimestamp') === ''
    ? textAt(object, 'status', 'phase')
    : 'Terminating'

const betaClass = 'volume.beta.kubernetes.io/storage-class'

const storageClass = (object: JsonObject): Json =>
  textAt(object, 'metadata', 'annotations', betaClass) || textAt(object, 'spec', 'storageClassName')

function claimOf(volume: JsonObject): Json {
  const claim = valueAt(volume, 'spec', 'claimRef')
  return claim ? `${textAt(claim, 'namespace')}/${textAt(claim, 'name')}` : ''
}

const isBound = (claim: JsonObject): boolean => textAt(claim, 'spec', 'volumeName') !== ''

const orFalse =
  (...path: string[]) =>
  (object: JsonObject): Json =>
    valueAt(object, ...path) ?? false

function audiences(driver: JsonObject): Json {
  const requests = valueAt(driver, 'spec', 'tokenRequests')
  if (requests === undefined || requests === null) return unset
  return listAt(driver, 'spec', 'tokenRequests')
    .map((each) => textAt(each, 'audience'))
    .join(',')
}

const attributesClass = column(
  'VolumeAttributesClass',
  textOr(unset, 'spec', 'volumeAttributesClassName'),
)
const volumeMode = wide('VolumeMode', textOr(unset, 'spec', 'volumeMode'))

export const storageColumns: Readonly<Record<string, readonly Column[]>> = {
  persistentvolumes: [
    nameColumn,
    column('Capacity', textOr('0', 'spec', 'capacity', 'storage')),
    column('Access Modes', (volume) => accessModes(volume, 'spec', 'accessModes')),
    column('Reclaim Policy', text('spec', 'persistentVolumeReclaimPolicy')),
    column('Status', phase),
    column('Claim', claimOf),
    column('StorageClass', storageClass),
    attributesClass,
    column('Reason', text('status', 'reason')),
    ageColumn,
    volumeMode,
  ],
  persistentvolumeclaims: [
    nameColumn,
    column('Status', phase),
    column('Volume', text('spec', 'volumeName')),
    column('Capacity', (claim) =>
      isBound(claim) ? textAt(claim, 'status', 'capacity', 'storage') || '0' : '',
    ),
    column('Access Modes', (claim) =>
      isBound(claim) ? accessModes(claim, 'status', 'accessModes') : '',
    ),
    column('StorageClass', storageClass),
    attributesClass,
    ageColumn,
    volumeMode,
  ],
  'storageclasses.storage.k8s.io': [
    {
      ...nameColumn,
      cell: nameOrDefault(
        'storageclass.kubernetes.io/is-default-class',
        'storageclass.beta.kubernetes.io/is-default-class',
      ),
    },
    column('Provisioner', text('provisioner')),
    column('ReclaimPolicy', textOr('Delete', 'reclaimPolicy')),
    column('VolumeBindingMode', textOr('Immediate', 'volumeBindingMode')),
    column('AllowVolumeExpansion', orFalse('allowVolumeExpansion')),
    ageColumn,
  ],
  'volumeattributesclasses.storage.k8s.io': [
    nameColumn,
    column('DriverName', text('driverName')),
    ageColumn,
  ],
  'volumeattachments.storage.k8s.io': [
    nameColumn,
    { ...column('Attacher', text('spec', 'attacher')), format: 'name' },
    column('PV', text('spec', 'source', 'persistentVolumeName')),
    column('Node', text('spec', 'nodeName')),
    boolean('Attached', orFalse('status', 'attached')),
    ageColumn,
  ],
  'csinodes.storage.k8s.io': [nameColumn, integer('Drivers', count('spec', 'drivers')), ageColumn],
  'csidrivers.storage.k8s.io': [
    nameColumn,
    boolean('AttachRequired', (driver) => valueAt(driver, 'spec', 'attachRequired') ?? true),
    boolean('PodInfoOnMount', orFalse('spec', 'podInfoOnMount')),
    boolean('StorageCapacity', orFalse('spec', 'storageCapacity')),
    column('TokenRequests', audiences),
    boolean('RequiresRepublish', orFalse('spec', 'requiresRepublish')),
    column(
      'Modes',
      (driver) => listAt(driver, 'spec', 'volumeLifecycleModes').map(printed).join(',') || none,
    ),
    ageColumn,
  ],
  'csistoragecapacities.storage.k8s.io': plainColumns,
}
