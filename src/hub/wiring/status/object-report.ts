import { apiVersionOf, qualifiedResource, type GVR } from '../../../api/kube/gvk.ts'
import { isObject, type Json, type JsonObject } from '../../../api/kube/json.ts'
import {
  configMaps,
  endpointSlices,
  nodes,
  pods,
  secrets,
  serviceAccounts,
  services,
  volumeClaims,
} from '../../../api/kube/resources.ts'
import { jsonOfObject } from '../../../api/codec/members.ts'
import { newestRecord } from '../../answers/newest-records.ts'
import { jsonOf } from '../../answers/on-site-reads.ts'
import type { NodeWrites } from '../../answers/node-writes.ts'
import type { FilterDecision } from '../../filter/chain.ts'
import { watchGroups, type OpenRequest } from '../../pipeline/open-requests.ts'
import { representationText } from '../../../api/request/representation.ts'
import type { LogStore } from '../../store/log/log-store.ts'
import type { AnswerRecord } from '../answer-record.ts'
import type { EnabledFilters } from '../enabled-filters.ts'
import type { Inputs } from '../../filter/inputs.ts'
import type { HostNetworkReport, PodOnNode } from './host-network-report.ts'

/** A state of the object as callers were given it. */
interface StoredState {
  /** As in `HubStatus.collections`. */
  readonly identity: string
  readonly representation: string
  /** `''`: the object is known to be absent. */
  readonly resourceVersion: string
  /** When an API server last confirmed it, in RFC 3339; absent: not known. */
  readonly confirmedAt?: string
}

/** The object as one component is shown it. */
export interface ShownState {
  readonly component: string
  /** The decisions of the filters on it, in order. */
  readonly decisions: readonly FilterDecision[]
  /** Inputs without which the component gets a 503. */
  readonly waitsFor: readonly string[]
  /** `null`: it is withheld. Absent: as it is stored. */
  readonly object?: JsonObject | null
}

/**
 * An object as it is stored and shown. Of a Secret it has lengths in place of values, of no object
 * the managed fields.
 */
export interface ObjectReport {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly stored: readonly StoredState[]
  /** The newest stored state; absent: no whole object is stored. */
  readonly object?: JsonObject
  readonly shown: readonly ShownState[]
}

export interface ObjectReportParts {
  readonly store: LogStore
  readonly writes: NodeWrites
  /** Absent of a stopped hub: its filters are those of its flags, and no component reads. */
  readonly running?: {
    readonly filters: Pick<EnabledFilters, 'decisionsOn' | 'statuses'>
    readonly answers: Pick<AnswerRecord, 'counts'>
    readonly open: Iterable<OpenRequest>
  }
}

type RunningParts = NonNullable<ObjectReportParts['running']>

/** Known without a list of them. */
const usual: readonly GVR[] = [
  pods,
  nodes,
  services,
  endpointSlices,
  configMaps,
  secrets,
  serviceAccounts,
  volumeClaims,
]

/** More than a node has. */
const mostCollections = 1_000
const mostComponents = 64

/**
 * `kind` in any form that kubectl takes; the namespace is ignored for cluster-scoped objects.
 * `undefined`: no resource of this kind is stored.
 */
function objectReport(
  kind: string,
  query: URLSearchParams,
  parts: ObjectReportParts,
): ObjectReport | undefined {
  const { namespace, name } = namedIn(query)
  const known = usual.filter((gvr) => isNamed(gvr, kind))
  const stored = (): GVR[] =>
    parts.store.overview(mostCollections).collections.map(({ key }) => key.gvr)
  const all = known.length > 0 ? known : stored().filter((gvr) => isNamed(gvr, kind))
  const reports = all.flatMap((gvr) =>
    [namespace, ''].map((each) => reportOf(gvr, each, name, parts)),
  )
  return (
    reports.find(({ object }) => object) ??
    reports.find((each) => each.stored.length > 0) ??
    reports[0]
  )
}

const shortNames: Readonly<Record<string, string>> = {
  po: 'pods',
  no: 'nodes',
  svc: 'services',
  cm: 'configmaps',
  sa: 'serviceaccounts',
  pvc: 'persistentvolumeclaims',
  pv: 'persistentvolumes',
  ns: 'namespaces',
  ep: 'endpoints',
  deploy: 'deployments',
  ds: 'daemonsets',
}

function isNamed(gvr: GVR, kind: string): boolean {
  // Tokens and reviews are stored under names that no path leads to.
  if (gvr.resource.includes('/')) return false
  const [word = '', ...group] = kind.toLowerCase().split('.')
  if (group.length > 0 && group.join('.') !== gvr.group) return false
  const plurals = [word, `${word}s`, `${word}es`, word.replace(/y$/, 'ies'), shortNames[word]]
  return plurals.includes(gvr.resource)
}

function reportOf(
  gvr: GVR,
  namespace: string,
  name: string,
  parts: ObjectReportParts,
): ObjectReport {
  const { store, writes, running } = parts
  const resource = qualifiedResource(gvr)
  const stored = storedStates(gvr, namespace, name, store)
  const head = { resource, namespace, name, stored }
  const source = { store, writes, reach: 'everyone' } as const
  const record = newestRecord({ gvr, namespace, name }, source)
  const found = typeof record === 'object' ? jsonOf(record, source) : undefined
  if (!found) return { ...head, shown: [] }
  const { gvk, object } = found
  const type = { apiVersion: apiVersionOf(gvk), kind: gvk.kind }
  const shownAs = (json: JsonObject): JsonObject => forPeople({ ...type, ...json }, gvr)
  if (!running) return { ...head, object: shownAs(found.json), shown: [] }
  const shown = componentsOf(resource, running).map((component): ShownState => {
    const decided = running.filters.decisionsOn(component, gvr, gvk, 'json', object)
    const { decisions, waitsFor } = decided
    const isSame = decided.object === object
    const as = decided.object ? shownAs(jsonOfObject('json', gvk, decided.object)) : null
    return { component, decisions, waitsFor, ...(!isSame && { object: as }) }
  })
  return { ...head, object: shownAs(found.json), shown }
}

const storedStates = (
  gvr: GVR,
  namespace: string,
  name: string,
  store: LogStore,
): readonly StoredState[] =>
  store.partitions(gvr).flatMap(({ partition }) => {
    const state = store.get({ partition, gvr, namespace, name })
    if (state === undefined) return []
    const identity = store.readers({ partition, gvr, namespace, name }).join(', ')
    const representation = representationText(partition.representation)
    if (state === 'absent') return [{ identity, representation, resourceVersion: '' }]
    const { object, confirmedAt } = state
    return [
      {
        identity,
        representation,
        resourceVersion: object.resourceVersion,
        ...(confirmedAt !== 0 && { confirmedAt: new Date(confirmedAt).toISOString() }),
      },
    ]
  })

/** The components that have read the resource, and those for which a filter acts on it. */
function componentsOf(
  resource: string,
  { filters, answers, open }: RunningParts,
): readonly string[] {
  const names = new Set([
    ...filters
      .statuses()
      .flatMap(({ rules }) => rules)
      .filter(({ resources }) => resources.includes(resource))
      .flatMap(({ components }) => components),
    ...watchGroups(open).flatMap((each) => (each.resource === resource ? [each.component] : [])),
    ...answers.counts.flatMap((each) => (each.what === resource ? [each.component] : [])),
  ])
  return [...names].slice(0, mostComponents).toSorted()
}

/** Without long members that a person does not read, and without secrets. */
function forPeople(object: JsonObject, gvr: GVR): JsonObject {
  const { apiVersion = '', kind = '', metadata, ...rest } = object
  const { managedFields: _long, ...kept } = isObject(metadata) ? metadata : {}
  const isSecret = gvr.group === secrets.group && gvr.resource === secrets.resource
  if (!isSecret) return { apiVersion, kind, metadata: kept, ...rest }
  const { data, stringData, ...others } = rest
  const { annotations, ...named } = kept
  return {
    apiVersion,
    kind,
    // kubectl apply leaves the whole Secret in an annotation.
    metadata: { ...named, ...lengths('annotations', annotations, 'utf8') },
    ...others,
    ...lengths('data', data, 'base64'),
    ...lengths('stringData', stringData, 'utf8'),
  }
}

/** The keys of a member with the lengths of their values. */
function lengths(
  member: string,
  values: Json | undefined,
  encoding: 'base64' | 'utf8',
): JsonObject {
  if (!isObject(values)) return {}
  const entries = Object.entries(values).map(([key, value]) => [
    key,
    typeof value === 'string' ? `(${Buffer.byteLength(value, encoding)} bytes)` : '(no text)',
  ])
  return { [member]: Object.fromEntries(entries) as JsonObject }
}

/** A pod as it is stored and shown, and its network. */
export interface PodReport extends ObjectReport {
  /** `unknown`: the hub is stopped. */
  readonly mode: Inputs['propagation'] | 'unknown'
  /** Absent: the kubelet of this node has not listed the pod. */
  readonly network?: PodOnNode
}

interface ContentReportParts extends ObjectReportParts {
  readonly hostNetwork: {
    report(): Promise<Pick<HostNetworkReport, 'pods'> & Pick<PodReport, 'mode'>>
  }
}

/** The reports with content of API objects, by name: root alone may read them. */
export const contentReports = (parts: ContentReportParts) => ({
  get: async (query: URLSearchParams) => objectReport(query.get('kind') ?? '', query, parts),
  pod: async (query: URLSearchParams): Promise<PodReport | undefined> => {
    const report = objectReport(qualifiedResource(pods), query, parts)
    if (!report) return undefined
    const { namespace, name } = namedIn(query)
    const { mode, pods: onNode = [] } = await parts.hostNetwork.report()
    const network = onNode.find((each) => each.namespace === namespace && each.name === name)
    return { ...report, mode, ...(network && { network }) }
  },
})

const namedIn = (query: URLSearchParams) => ({
  namespace: query.get('namespace') ?? '',
  name: query.get('name') ?? '',
})
