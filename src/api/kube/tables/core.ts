import type { Json, JsonObject } from '../json.ts'
import { listAt, objectAt, printed, textAt, valueAt } from '../json-at.ts'
import { ageOf } from './age.ts'
import { conditionOf } from '../conditions.ts'
import { size } from './cells.ts'
import {
  ageColumn,
  column,
  nameColumn,
  none,
  text,
  textOr,
  unset,
  wide,
  type Column,
} from './column.ts'

// Nodes, and what a namespace holds besides pods.

const dataSize = (object: JsonObject): Json => size(object, 'data') + size(object, 'binaryData')

function nodeStatus(node: JsonObject): Json {
  const ready = conditionOf(node, 'Ready')
  const word = !ready ? 'Unknown' : textAt(ready, 'status') === 'True' ? 'Ready' : 'NotReady'
  return valueAt(node, 'spec', 'unschedulable') === true ? `${word},SchedulingDisabled` : word
}

const rolePrefix = 'node-role.kubernetes.io/'

function nodeRoles(node: JsonObject): Json {
  const roles = Object.entries(objectAt(node, 'metadata', 'labels')).flatMap(([label, value]) =>
    label.startsWith(rolePrefix)
      ? [label.slice(rolePrefix.length)]
      : label === 'kubernetes.io/role'
        ? [printed(value)]
        : [],
  )
  return [...new Set(roles.filter((role) => role !== ''))].toSorted().join(',') || none
}

const nodeAddress =
  (type: string) =>
  (node: JsonObject): Json => {
    const addresses = listAt(node, 'status', 'addresses')
    const found = addresses.find((each) => textAt(each, 'type') === type)
    return found ? textAt(found, 'address') : none
  }

const nodeInfo = (name: string) => textOr('<unknown>', 'status', 'nodeInfo', name)

function kernel(node: JsonObject): Json {
  const architecture = textAt(node, 'status', 'nodeInfo', 'architecture')
  const version = printed(nodeInfo('kernelVersion')(node))
  return architecture === '' ? version : `${version} (${architecture})`
}

const nodeColumns = [
  nameColumn,
  column('Status', nodeStatus),
  column('Roles', nodeRoles),
  ageColumn,
  column('Version', text('status', 'nodeInfo', 'kubeletVersion')),
  wide('Internal-IP', nodeAddress('InternalIP')),
  wide('External-IP', nodeAddress('ExternalIP')),
  wide('OS-Image', nodeInfo('osImage')),
  wide('Kernel-Version', kernel),
  wide('Container-Runtime', nodeInfo('containerRuntimeVersion')),
]

/** When an event was first seen. */
const firstSeen = (event: JsonObject): string =>
  ageOf(valueAt(event, 'firstTimestamp') ?? valueAt(event, 'eventTime'))

const lastSeen = (event: JsonObject): Json => {
  const time = valueAt(event, 'lastTimestamp')
  const series = valueAt(event, 'series', 'lastObservedTime')
  return series ? ageOf(series) : time ? ageOf(time) : firstSeen(event)
}

function involved(of: string) {
  return (event: JsonObject): Json => {
    const kind = textAt(event, of, 'kind').toLowerCase()
    const name = textAt(event, of, 'name')
    return name === '' ? kind : `${kind}/${name}`
  }
}

function eventCount(event: JsonObject): Json {
  const single = valueAt(event, 'count') || 1
  return valueAt(event, 'series') ? (valueAt(event, 'series', 'count') ?? 0) : single
}

function eventSource(event: JsonObject): Json {
  const component = textAt(event, 'source', 'component') || textAt(event, 'reportingComponent')
  const host = textAt(event, 'source', 'host') || textAt(event, 'reportingInstance')
  return host === '' ? component : `${component}, ${host}`
}

/** Events of the core group. */
const eventColumns: readonly Column[] = [
  column('Last Seen', lastSeen),
  column('Type', text('type')),
  column('Reason', text('reason')),
  column('Object', involved('involvedObject')),
  wide('Subobject', text('involvedObject', 'fieldPath')),
  wide('Source', eventSource),
  column('Message', (event) => textAt(event, 'message').trim()),
  wide('First Seen', firstSeen),
  wide('Count', eventCount),
  { ...nameColumn, priority: 1 },
]

const modes = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
] as const

const accessModes = (claim: JsonObject): string => {
  const all = listAt(claim, 'status', 'accessModes')
  return modes
    .filter(([mode]) => all.includes(mode))
    .map(([, short]) => short)
    .join(',')
}

const claimPhase = (claim: JsonObject): Json =>
  textAt(claim, 'metadata', 'deletionTimestamp') === ''
    ? textAt(claim, 'status', 'phase')
    : 'Terminating'

const betaClass = 'volume.beta.kubernetes.io/storage-class'

const storageClass = (claim: JsonObject): Json =>
  textAt(claim, 'metadata', 'annotations', betaClass) || textAt(claim, 'spec', 'storageClassName')

/** A cell that only a bound claim has. */
const ofBound =
  (read: (claim: JsonObject) => string) =>
  (claim: JsonObject): Json =>
    textAt(claim, 'spec', 'volumeName') === '' ? '' : read(claim)

const claimColumns: readonly Column[] = [
  nameColumn,
  column('Status', claimPhase),
  column('Volume', text('spec', 'volumeName')),
  column(
    'Capacity',
    ofBound((claim) => textAt(claim, 'status', 'capacity', 'storage') || '0'),
  ),
  column('Access Modes', ofBound(accessModes)),
  column('StorageClass', storageClass),
  column('VolumeAttributesClass', textOr(unset, 'spec', 'volumeAttributesClassName')),
  ageColumn,
  wide('VolumeMode', textOr(unset, 'spec', 'volumeMode')),
]

export const coreColumns: Readonly<Record<string, readonly Column[]>> = {
  nodes: nodeColumns,
  configmaps: [nameColumn, column('Data', dataSize), ageColumn],
  secrets: [
    nameColumn,
    column('Type', text('type')),
    column('Data', (secret) => size(secret, 'data')),
    ageColumn,
  ],
  namespaces: [nameColumn, column('Status', text('status', 'phase')), ageColumn],
  persistentvolumeclaims: claimColumns,
  events: eventColumns,
}
