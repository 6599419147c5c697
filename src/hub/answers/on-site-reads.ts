import { listKind, objectKind } from '../../api/codec/list.ts'
import { goJson } from '../../api/codec/json/write.ts'
import { jsonOfObject } from '../../api/codec/members.ts'
import { tableOfRow } from '../../api/codec/object.ts'
import { apiVersionOf, qualifiedResource, type GVK, type GVR } from '../../api/kube/gvk.ts'
import { parseJson, type Json, type JsonObject } from '../../api/kube/json.ts'
import { listAt, textAt } from '../../api/kube/json-at.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import { namespacedName, type ApiObject } from '../../api/kube/object.ts'
import { customResourceDefinitions } from '../../api/kube/resources.ts'
import { notFound, StatusError } from '../../api/kube/status.ts'
import { isNewer } from '../../api/kube/resource-version.ts'
import { columnsOfBuiltin, type Column } from '../../api/kube/tables/columns.ts'
import { customColumns, defaultColumns } from '../../api/kube/tables/custom.ts'
import { columnDefinitions, partialMetadata, rowOf } from '../../api/kube/tables/table.ts'
import { nodeIdentity } from '../../api/request/identity.ts'
import { listOptionsOf, refuseVersionWithContinue } from '../../api/request/list-options.ts'
import { tableOptionsOf, type Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { because } from '../../http/exchange/explanation.ts'
import type { Exchange, ListReply, ObjectReply } from '../../http/exchange/exchange.ts'
import type { ObjectOfKind, ObjectStore } from '../store/store.ts'
import { coveringCollection, storedList } from './covering-collection.ts'
import { storedObject } from './offline-reads.ts'
import { selectorsOf } from './keys.ts'
import {
  mergedRecord,
  mergedRecords,
  versionOf,
  type KnownState,
  type MergedRecord,
  type MergedRecords,
  type RecordQuery,
  type RecordSource,
} from './merged-records.ts'
import type { NodeEvent, NodeEvents } from './node-events.ts'
import { listReply, objectReply } from './replies.ts'
import {
  refuseInvalidVersion,
  refuseNewerGet,
  refuseOtherListVersion,
} from './requested-version.ts'
import { withOrigin } from './record-origin.ts'
import { isForPerson } from './staleness.ts'
import type { StatusOverlays } from './status-overlays.ts'

/**
 * Whose records a caller is shown offline: only its own; those of the node as well, whatever
 * component read them and in whatever representation; everyone's.
 */
export type Reach = 'own' | 'node' | 'everyone'

export interface OnSiteParts {
  readonly store: ObjectStore
  readonly overlays: StatusOverlays
  readonly events: NodeEvents
  /** `own` while an API server can be reached. */
  readonly reachOf: (exchange: Exchange) => Promise<Reach>
}

/** The records that a caller is shown. */
type Shown = RecordSource & Pick<OnSiteParts, 'overlays'>

/** The same, with the events that the node has written. */
type ShownOnSite = Shown & Pick<OnSiteParts, 'events'>

/**
 * Answers a read of a person who is root at the node and cannot reach the cloud. `exact` answers
 * from the records of the same caller. Where these have no answer in the caller's preferred
 * representation, or components of the node have recorded newer states since, the hub makes the
 * answer from the components' records, with a `Warning` that says so; where these have none either,
 * `exact` may answer in another representation.
 */
export async function readOnSite<R extends ListReply | ObjectReply>(
  exchange: Exchange,
  info: ResourceRequest,
  { store, overlays, events, reachOf }: OnSiteParts,
  exact: (exchange: Exchange) => R,
): Promise<ListReply | ObjectReply> {
  const reach = isForPerson(exchange) ? await reachOf(exchange) : 'own'
  if (reach === 'own') return exact(exchange)
  const { representations } = exchange
  const shown = { store, overlays, events, reach }
  const since = info.verb === 'get' ? objectSince : listSince
  let newer: Answer
  try {
    const preferred = { ...exchange, representations: representations.slice(0, 1) }
    newer = await since(preferred, info, shown)
    if (!newer) return exact(preferred)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  if (newer) return because(unlessAbsent(newer, info), 'components of this node have read it since')
  const read = info.verb === 'get' ? recordedObject : recordedList
  for (const representation of representations) {
    if (!isMade(representation)) continue
    const reply = await read(representation, info, shown)
    if (reply) return because(unlessAbsent(reply, info), reasonOf(representation))
  }
  return exact(exchange)
}

/**
 * 'absent': the records show that there is no such object. `undefined`: they do not show whether
 * there is.
 */
type Answer<R = ListReply | ObjectReply> = R | 'absent' | undefined

function unlessAbsent<R>(reply: R | 'absent', { gvr, name = '' }: ResourceRequest): R {
  if (reply === 'absent') throw new StatusError(notFound({ ...gvr, name }))
  return reply
}

const reasonOf = ({ projection }: Representation): string =>
  projection === 'table'
    ? 'the Table is made from what components of this node have read'
    : 'components of this node have read it'

const queryOf = (info: ResourceRequest): RecordQuery => ({
  gvr: info.gvr,
  ...(info.namespace !== undefined && { namespace: info.namespace }),
  ...selectorsOf(info),
})

/** Not recorded, or absent according to the caller's own records. */
const isMissing = (error: unknown): boolean =>
  error instanceof StatusError && (error.status.code === 503 || error.status.code === 404)

/** The state of an object that components have recorded after the one that the caller has read. */
async function objectSince(
  exchange: Exchange,
  info: ResourceRequest,
  parts: ShownOnSite,
): Promise<Answer<ObjectReply>> {
  const { representation, stored } = storedObject(exchange, info, parts.store)
  if (!isMade(representation)) return undefined
  const { resourceVersion: version, bytes } = stored.object
  const table = isTableOfPods(representation, info.gvr) ? jsonIn(bytes) : undefined
  const [row] = listAt(table, 'rows')
  const nodeName = nodeInRow(listAt(table, 'columnDefinitions'), row)
  return recordedObject(representation, info, parts, { version, ...nodeName })
}

/**
 * The list that the caller has read, with the changes that components have recorded since. Where a
 * whole collection is newer, that collection; else without the objects that are deleted or not
 * selected any more, and with those that are newer or were added. Rows of a Table are put in only
 * under the columns that it has.
 */
async function listSince(
  exchange: Exchange,
  info: ResourceRequest,
  parts: ShownOnSite,
): Promise<ListReply | undefined> {
  const own = coveringCollection(exchange, info, parts.store)
  if (!own || !isMade(own.representation)) return undefined
  const { resourceVersion: version, representation } = own
  const stored = storedList(own, parts.store)
  if (!stored) return undefined
  const { gvr } = info
  const { gvk } = stored
  const of = { identity: exchange.identity, gvr }
  const shown = parts.overlays.showAll(of, representation, objectKind(gvk), stored)
  const objects = [...shown.batches].flat()
  const query = queryOf(info)
  const nodeOf = isTableOfPods(representation, gvr) ? nodesIn(stored.extra) : () => ({})
  const known = objects.map((each) => ({ ...nameOf(each), version, ...nodeOf(each) }))
  const merged = await mergedRecords(
    query,
    parts,
    newestOfEachName([...known, ...sentStates(query, parts)]),
  )
  if (!merged) return undefined
  if (isNewer(merged.covering?.resourceVersion, version))
    return recordedList(representation, info, parts, merged)
  const form = formOf(representation, gvr, parts)
  const events = eventsBeside(query, merged, parts).filter(
    ({ sentAt, object }) => sentAt === undefined || isNewer(object.resourceVersion, version),
  )
  const isOfTheseColumns = stored.extra === form.extra
  if (!isOfTheseColumns && events.length > 0)
    return recordedList(representation, info, parts, merged)
  const newer = isOfTheseColumns
    ? merged.records.filter((record) => isNewer(record.resourceVersion, version))
    : []
  const { contradicted } = merged
  const kept = objects.filter((each) => !contradicted.has(namespacedName(each)))
  if (newer.length + events.length === 0 && kept.length === objects.length) return undefined
  const options = listOptionsOf(info.query, false, true)
  refuseVersionWithContinue(options)
  refuseInvalidVersion(options.resourceVersion, version, 'list')
  refuseOtherListVersion(options, version)
  const added = [...batchesOf(withEvents(newer, events), form, parts)].flat()
  const confirmedAt = leastOf([
    stored.confirmedAt,
    ...newer.map((each) => each.confirmedAt),
    ...events.flatMap(({ sentAt }) => sentAt ?? []),
  ])
  const reply = listReply(representation, {
    ...stored,
    confirmedAt,
    batches: [lastOfEachName([...kept, ...added].map((each) => [namespacedName(each), each]))],
  })
  const origin = { confirmedAt, written: writtenIn(events) }
  return { ...reply, headers: withOrigin(reply.headers, origin) }
}

const leastOf = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.min(a, b))

const nameOf = ({ namespace, name }: ApiObject): Pick<ApiObject, 'namespace' | 'name'> => ({
  namespace,
  name,
})

/** A Table of pods says in a column which node each is bound to. */
const isTableOfPods = ({ projection }: Representation, gvr: GVR): boolean =>
  projection === 'table' && qualifiedResource(gvr) === 'pods'

function nodesIn(extra: string): (row: ApiObject) => Pick<KnownState, 'nodeName'> {
  const columns = listAt(parseJson(`{${extra}}`), 'columnDefinitions')
  return ({ bytes }) => nodeInRow(columns, jsonIn(bytes))
}

function nodeInRow(columns: readonly Json[], row: Json | undefined): Pick<KnownState, 'nodeName'> {
  const at = columns.findIndex((column) => textAt(column, 'name') === 'Node')
  const cell = listAt(row, 'cells')[at]
  return typeof cell === 'string' && cell !== '<none>' ? { nodeName: cell } : {}
}

const jsonIn = (bytes: Uint8Array): Json | undefined => parseJson(Buffer.from(bytes).toString())

type KnownObject = Pick<ApiObject, 'namespace' | 'name'> & KnownState

/** The states of the events that API servers have accepted. */
const sentStates = (query: RecordQuery, { events }: ShownOnSite): readonly KnownObject[] =>
  events
    .select(query)
    .flatMap(({ sentAt, object }) =>
      sentAt === undefined ? [] : [{ ...nameOf(object), version: object.resourceVersion }],
    )

function newestOfEachName(states: readonly KnownObject[]): ReadonlyMap<string, KnownObject> {
  const newest = new Map<string, KnownObject>()
  for (const each of states) {
    const before = newest.get(namespacedName(each))
    if (!before || isNewer(each.version, before.version)) newest.set(namespacedName(each), each)
  }
  return newest
}

/**
 * The node's own events that a list has besides the records: those written offline, and those sent
 * of which no later record is known.
 */
function eventsBeside(
  query: RecordQuery,
  { records, contradicted }: MergedRecords,
  { events }: ShownOnSite,
): readonly NodeEvent[] {
  const selected = events.select(query)
  if (selected.length === 0) return selected
  const recorded = new Map(records.map((each) => [namespacedName(each.key), each.resourceVersion]))
  return selected.filter(({ sentAt, object }) => {
    const name = namespacedName(object)
    if (sentAt === undefined) return true
    if (contradicted.has(name)) return false
    return !recorded.has(name) || isNewer(object.resourceVersion, recorded.get(name))
  })
}

const writtenIn = (events: readonly NodeEvent[]): number =>
  events.filter(({ sentAt }) => sentAt === undefined).length

/** Whether the hub makes answers in this representation from records of components. */
const isMade = ({ encoding, projection }: Representation): boolean =>
  encoding === 'json' && projection !== 'metadata'

/** With `known`, only a state that is newer than that one. */
async function recordedObject(
  representation: Representation,
  info: ResourceRequest,
  parts: ShownOnSite,
  known?: KnownState,
): Promise<Answer<ObjectReply>> {
  const { gvr, namespace = '', name = '' } = info
  const event = parts.events.get(gvr, namespace, name)
  const shownEvent = ({ sentAt = 0, ...written }: NodeEvent): ObjectReply => {
    const single = formOf(representation, gvr, parts).single(shownObject('json', written))
    const reply = objectReply(representation, single)
    const origin = { confirmedAt: sentAt, written: sentAt ? 0 : 1 }
    return { ...reply, headers: withOrigin(reply.headers, origin) }
  }
  if (event && event.sentAt === undefined) return shownEvent(event)
  const sent = event && !isNewer(known?.version, event.object.resourceVersion) ? event : undefined
  const since = sent ? { version: sent.object.resourceVersion } : known
  const record = mergedRecord({ gvr, namespace, name }, parts, since)
  if (record === 'absent') return record
  if (since && !isNewer(record?.resourceVersion, since.version)) return sent && shownEvent(sent)
  const shown = record && jsonOf(record, parts)
  if (!shown) return undefined
  const { confirmedVersion, confirmedAt } = record
  refuseNewerGet(info, confirmedVersion)
  const single = formOf(representation, gvr, parts).single(shown)
  const reply = objectReply(representation, single)
  return { ...reply, headers: withOrigin(reply.headers, { confirmedAt }) }
}

/** `found`: the merged records, where they have been read. */
async function recordedList(
  representation: Representation,
  info: ResourceRequest,
  parts: ShownOnSite,
  found?: MergedRecords,
): Promise<ListReply | undefined> {
  const options = listOptionsOf(info.query, false, true)
  refuseVersionWithContinue(options)
  const { gvr } = info
  const query = queryOf(info)
  const merged =
    found ?? (await mergedRecords(query, parts, newestOfEachName(sentStates(query, parts))))
  const events = merged ? eventsBeside(query, merged, parts) : []
  const kind = merged && (events[0]?.gvk ?? kindOf(merged, parts.store))
  // An empty list needs a collection that shows that there is no object.
  if (!kind) return undefined
  const version = versionOf(merged)
  refuseInvalidVersion(options.resourceVersion, version, 'list')
  refuseOtherListVersion(options, version)
  const form = formOf(representation, gvr, parts)
  const confirmedAt = confirmedAtOf(merged, events, parts.store)
  const reply = listReply(representation, {
    gvk: form.listKind(kind),
    resourceVersion: version,
    extra: form.extra,
    confirmedAt,
    batches: batchesOf(withEvents(merged.records, events), form, parts),
  })
  const isPartial = !merged.covering
  const origin = { confirmedAt, isPartial, written: writtenIn(events) }
  return { ...reply, headers: withOrigin(reply.headers, origin) }
}

/** The kind of the objects; `undefined` for none where no collection says that there are none. */
function kindOf({ records, covering }: MergedRecords, store: ObjectStore): GVK | undefined {
  const [first] = records
  if (first) return first.gvk
  const list = covering && store.list(covering.key)
  return list && objectKind(list.gvk)
}

/** When the least recently confirmed part was confirmed; 0: not known. */
function confirmedAtOf(
  { records, covering }: MergedRecords,
  events: readonly NodeEvent[],
  store: ObjectStore,
): number {
  const all = [
    ...records.map(({ confirmedAt }) => confirmedAt),
    ...events.flatMap(({ sentAt }) => sentAt ?? []),
  ]
  return all.length > 0 ? leastOf(all) : ((covering && store.confirmedAt(covering.key)) ?? 0)
}

/** An object in JSON with its kind, and facts of its record. */
interface ShownObject {
  readonly gvk: GVK
  readonly object: ApiObject
  readonly json: JsonObject
}

/** A record in JSON, with the status that its component has written offline. */
export function jsonOf({ key, encoding }: MergedRecord, parts: Shown): ShownObject | undefined {
  const stored = parts.store.get(key)
  if (typeof stored !== 'object') return undefined
  const { gvk } = stored
  const { gvr, namespace, name, partition } = key
  // Of what is kept once for all callers the kubelet's status is shown.
  const of = { identity: partition.identity || nodeIdentity, gvr, namespace, name }
  return shownObject(encoding, { gvk, object: parts.overlays.peek(of, encoding, stored) })
}

function shownObject(encoding: Encoding, { gvk, object }: ObjectOfKind): ShownObject {
  const json = jsonOfObject(encoding, gvk, object)
  const bytes = encoding === 'json' ? object.bytes : Buffer.from(goJson(json))
  const type = { kind: gvk.kind, apiVersion: apiVersionOf(gvk) }
  return { gvk, object: { ...object, bytes }, json: { ...type, ...json } }
}

/** The records, with the node's own events in place of records of the same name. */
function withEvents(
  records: readonly MergedRecord[],
  events: readonly NodeEvent[],
): readonly (MergedRecord | ObjectOfKind)[] {
  if (events.length === 0) return records
  return lastOfEachName<MergedRecord | ObjectOfKind>([
    ...records.map((each) => [namespacedName(each.key), each] as const),
    ...events.map((each) => [namespacedName(each.object), each] as const),
  ])
}

/** In the order of names. */
const lastOfEachName = <T>(named: Iterable<readonly [name: string, of: T]>): T[] =>
  [...new Map(named)].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, of]) => of)

/** Objects of one batch. */
const batchSize = 64

function* batchesOf(
  all: readonly (MergedRecord | ObjectOfKind)[],
  form: Form,
  parts: Shown,
): Generator<readonly ApiObject[]> {
  for (let at = 0; at < all.length; at += batchSize) {
    yield all.slice(at, at + batchSize).flatMap((each) => {
      const shown = 'key' in each ? jsonOf(each, parts) : shownObject('json', each)
      return shown ? [form.item(shown)] : []
    })
  }
}

/** How a representation shows objects. */
interface Form {
  readonly listKind: (object: GVK) => GVK
  /** As `ListEnd.extra`. */
  readonly extra: string
  readonly item: (shown: ShownObject) => ApiObject
  readonly single: (shown: ShownObject) => ObjectOfKind
}

const wholeObjects: Form = { listKind, extra: '', item: ({ object }) => object, single: (it) => it }

function formOf(representation: Representation, gvr: GVR, parts: Shown): Form {
  if (representation.projection === 'object') return wholeObjects
  const { version, included } = tableOptionsOf(representation)
  const columns = columnsOf(gvr, parts)
  const gvk = { group: 'meta.k8s.io', version, kind: 'Table' }
  const extra = `"columnDefinitions":${goJson(columnDefinitions(columns))}`
  const carried = (object: JsonObject): Json =>
    included === 'None' ? null : included === 'Object' ? object : partialMetadata(object, version)
  const item = ({ object, json }: ShownObject): ApiObject => ({
    ...object,
    bytes: Buffer.from(goJson(rowOf(columns, json, carried(json)))),
  })
  const single = (shown: ShownObject): ObjectOfKind => ({
    gvk,
    object: tableOfRow(gvk, item(shown), extra),
  })
  return { listKind: () => gvk, extra, item, single }
}

/** Those of a custom resource are in its definition, if any component has read it. */
function columnsOf(gvr: GVR, parts: Shown): readonly Column[] {
  const builtin = columnsOfBuiltin(gvr)
  if (builtin) return builtin
  const named = { gvr: customResourceDefinitions, namespace: '', name: qualifiedResource(gvr) }
  const record = mergedRecord(named, parts)
  const definition = typeof record === 'object' ? jsonOf(record, parts) : undefined
  return definition ? customColumns(definition.json, gvr.version) : defaultColumns
}
