import type { Json, JsonObject } from '../json.ts'
import { listAt, objectAt, printed, textAt, valueAt } from '../json-at.ts'
import { ageOf } from './age.ts'
import { conditionOf, labels, ofContainers, size } from './cells.ts'
import {
  ageColumn,
  column,
  nameColumn,
  none,
  text,
  textOr,
  wide,
  integer,
  number,
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

/** The same under the names that events.k8s.io gives to the fields. */
const newEventColumns: readonly Column[] = eventColumns.map((each) => ({
  ...each,
  cell: (event) => each.cell(asCoreEvent(event)),
}))

const asCoreEvent = (event: JsonObject): JsonObject => ({
  ...event,
  involvedObject: objectAt(event, 'regarding'),
  source: objectAt(event, 'deprecatedSource'),
  firstTimestamp: valueAt(event, 'deprecatedFirstTimestamp') ?? null,
  lastTimestamp: valueAt(event, 'deprecatedLastTimestamp') ?? null,
  count: valueAt(event, 'deprecatedCount') ?? 0,
  reportingComponent: textAt(event, 'reportingController'),
  message: textAt(event, 'note'),
})

/** What a quota has used of its hard limits: of requests, or of limits. */
const quota =
  (isOfLimits: boolean) =>
  (object: JsonObject): Json => {
    const used = objectAt(object, 'status', 'used')
    return Object.entries(objectAt(object, 'status', 'hard'))
      .filter(([resource]) => resource.startsWith('limits.') === isOfLimits)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([resource, hard]) => `${resource}: ${printed(used[resource] ?? '0')}/${printed(hard)}`)
      .join(', ')
  }

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
  serviceaccounts: [nameColumn, ageColumn],
  events: eventColumns,
  'events.events.k8s.io': newEventColumns,
  resourcequotas: [
    nameColumn,
    column('Request', quota(false)),
    column('Limit', quota(true)),
    ageColumn,
  ],
  podtemplates: [
    nameColumn,
    column('Containers', ofContainers('name', 'template')),
    column('Images', ofContainers('image', 'template')),
    column('Pod Labels', labels('template', 'metadata', 'labels')),
  ],
  replicationcontrollers: [
    nameColumn,
    integer('Desired', number('spec', 'replicas')),
    integer('Current', number('status', 'replicas')),
    integer('Ready', number('status', 'readyReplicas')),
    ageColumn,
    wide('Containers', ofContainers('name', 'spec', 'template')),
    wide('Images', ofContainers('image', 'spec', 'template')),
    wide('Selector', labels('spec', 'selector')),
  ],
}
