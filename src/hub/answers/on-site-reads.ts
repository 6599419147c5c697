import { listKind, objectKind, type ListBatch } from '../../api/codec/list.ts'
import { goJson } from '../../api/codec/json/write.ts'
import { jsonOfObject } from '../../api/codec/members.ts'
import { openObject, type ObjectOfKind } from '../../api/codec/object.ts'
import { listHead, listTail } from '../../api/codec/render.ts'
import { apiVersionOf, qualifiedResource, type GVK, type GVR } from '../../api/kube/gvk.ts'
import type { Json, JsonObject } from '../../api/kube/json.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import { namespacedName, type ApiObject } from '../../api/kube/object.ts'
import { customResourceDefinitions } from '../../api/kube/resources.ts'
import { notFound, StatusError } from '../../api/kube/status.ts'
import { isNewer } from '../../api/kube/resource-version.ts'
import { columnsOfBuiltin, type Column } from '../../api/kube/tables/columns.ts'
import { customColumns, defaultColumns } from '../../api/kube/tables/custom.ts'
import { columnDefinitions, partialMetadata, rowOf } from '../../api/kube/tables/table.ts'
import { listOptionsOf, refuseVersionWithContinue } from '../../api/request/list-options.ts'
import { tableOptionsOf, type Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import {
  because,
  type Exchange,
  type ListReply,
  type ObjectReply,
  type Reply,
} from '../../http/exchange/exchange.ts'
import type { HeaderList } from '../../http/exchange/headers.ts'
import type { ObjectStore } from '../store/store.ts'
import { selectorsOf } from './keys.ts'
import {
  newestRecord,
  newestRecords,
  type NewestRecord,
  type RecordSource,
} from './newest-records.ts'
import type { NodeEvent, NodeWrites } from './node-writes.ts'
import { listReply, objectReply, isForPerson, withWarning } from './replies.ts'
import {
  refuseInvalidVersion,
  refuseNewerGet,
  refuseOtherListVersion,
  storedTable,
} from './offline-reads.ts'

/**
 * Whose records a caller is shown offline: only its own; those of the node as well, whatever
 * component read them and in whatever representation; everyone's.
 */
export type Reach = 'own' | 'node' | 'everyone'

export interface OnSiteParts {
  readonly store: ObjectStore
  readonly writes: NodeWrites
  /** `own` while an API server can be reached. */
  readonly reachOf: (exchange: Exchange) => Promise<Reach>
}

/** The records that a caller is shown. */
type Shown = RecordSource & Pick<OnSiteParts, 'writes'>

/**
 * Answers a read of a person who is root at the node and cannot reach the cloud, from all copies of
 * the resource, decoded: of each object the newest state. Where the copies have no answer, `exact`
 * answers from what the same caller has read.
 */
export async function readOnSite(
  exchange: Exchange,
  info: ResourceRequest,
  { store, writes, reachOf }: OnSiteParts,
  exact: () => Reply,
): Promise<Reply> {
  const reach = isForPerson(exchange) ? await reachOf(exchange) : 'own'
  const representation = exchange.representations.find(
    ({ encoding, projection }) => encoding === 'json' && projection !== 'metadata',
  )
  if (reach === 'own' || !representation) return exact()
  const parts = { store, writes, reach }
  const reply =
    info.verb === 'get'
      ? objectOnSite(representation, info, parts, exchange)
      : await listOnSite(representation, info, parts, exchange)
  if (reply === 'absent') throw new StatusError(notFound({ ...info.gvr, name: info.name ?? '' }))
  return reply ? because(reply, 'components of this node have read it') : exact()
}

/** Whether an event was written offline, or after what is recorded of it. */
const isShown = (
  { sentAt, object }: NodeEvent,
  recorded: { readonly resourceVersion: string } | undefined,
): boolean =>
  sentAt === undefined || !recorded || isNewer(object.resourceVersion, recorded.resourceVersion)

function objectOnSite(
  representation: Representation,
  info: ResourceRequest,
  parts: Shown,
  exchange: Exchange,
): ObjectReply | 'absent' | undefined {
  const { gvr, namespace = '', name = '' } = info
  const own = storedTable(exchange, info, parts.store)
  const shownAt = own && openObject('json', 'metadata', own.object.bytes).object.resourceVersion
  const record = newestRecord({ gvr, namespace, name }, parts, shownAt)
  const recorded = typeof record === 'object' ? record : undefined
  const event = parts.writes.get(gvr, namespace, name)
  const isEvent = event !== undefined && isShown(event, recorded)
  const object = isEvent ? shownObject('json', event) : recorded && jsonOf(recorded, parts)
  if (!object) return record === 'absent' ? record : undefined
  if (!isEvent && recorded) refuseNewerGet(info, recorded.confirmedVersion)
  const body = formOf(representation, gvr, parts).single?.(object)
  const reply = { ...objectReply(representation, object), ...(body && { body }) }
  const confirmedAt = isEvent ? event.sentAt : recorded?.confirmedAt
  return { ...reply, headers: withOrigin(reply.headers, [{ confirmedAt }]) }
}

/** One object of a list. */
interface Entry {
  readonly resourceVersion: string
  /** Absent: written offline. */
  readonly confirmedAt: number | undefined
  readonly item: () => ApiObject | undefined
}

async function listOnSite(
  representation: Representation,
  info: ResourceRequest,
  parts: Shown,
  exchange: Exchange,
): Promise<ListReply | undefined> {
  const { gvr, namespace } = info
  const options = listOptionsOf(info.query, false, true)
  refuseVersionWithContinue(options)
  const query = { gvr, ...(namespace !== undefined && { namespace }), ...selectorsOf(info) }
  const newest = await newestRecords(query, parts)
  if (!newest) return undefined
  const { records, covering } = newest
  const form = formOf(representation, gvr, parts)
  // A Table that the caller has read has all objects, where these records may have only some.
  if (!covering && storedTable(exchange, info, parts.store)) return undefined
  const entries = new Map<string, Entry>()
  const itemOf = (shown: ShownObject | undefined): ApiObject | undefined =>
    shown && form.item(shown)
  for (const each of records)
    entries.set(namespacedName(each.key), { ...each, item: () => itemOf(jsonOf(each, parts)) })
  const events = parts.writes.select(query)
  for (const each of events) {
    const { object, sentAt: confirmedAt } = each
    const name = namespacedName(object)
    const { resourceVersion } = object
    if (isShown(each, entries.get(name)))
      entries.set(name, {
        resourceVersion,
        confirmedAt,
        item: () => itemOf(shownObject('json', each)),
      })
  }
  const whole = covering && parts.store.list(covering.key)
  const kind = (records[0] ?? events[0])?.gvk ?? (whole && objectKind(whole.gvk))
  // An empty list needs a collection that shows that there is no object.
  if (!kind) return undefined
  // Without a collection that holds all there may be more objects, and the parts have no version.
  const resourceVersion = whole?.resourceVersion ?? ''
  refuseInvalidVersion(options.resourceVersion, resourceVersion, 'list')
  refuseOtherListVersion(options, resourceVersion)
  const all = [...entries].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each)
  const reply = listReply(representation, {
    gvk: form.listKind(kind),
    resourceVersion,
    extra: form.extra,
    confirmedAt: 0,
    batches: batchesOf(all),
  })
  return { ...reply, headers: withOrigin(reply.headers, all, whole ?? 'part') }
}

/**
 * Adds `Age` and the `Warning` that says where the answer comes from. `whole`: the list that shows
 * that there are no more objects.
 */
function withOrigin(
  headers: HeaderList,
  shown: readonly Pick<Entry, 'confirmedAt'>[],
  whole?: { readonly confirmedAt: number } | 'part',
): HeaderList {
  const times = shown.flatMap(({ confirmedAt }) => confirmedAt ?? [])
  const ofEmpty = typeof whole === 'object' ? whole.confirmedAt : 0
  const oldest = times.length > 0 ? times.reduce((a, b) => Math.min(a, b)) : ofEmpty
  const more = whole === 'part' ? '; the cluster may have more' : ''
  const written = shown.length - times.length
  const here = written > 0 ? `; ${written} written here, and not in the cluster` : ''
  return withWarning(headers, oldest, `; as components of this node have read it${more}${here}`)
}

/** A record in JSON, with the status that the node has written offline. */
export function jsonOf({ key, encoding }: NewestRecord, parts: Shown): ShownObject | undefined {
  const stored = parts.store.get(key)
  if (typeof stored !== 'object') return undefined
  const patched = parts.writes.patched(key.gvr, stored.object)
  return patched ? shownObject('json', patched) : shownObject(encoding, stored)
}

function shownObject(encoding: Encoding, { gvk, object }: ObjectOfKind): ShownObject {
  const json = jsonOfObject(encoding, gvk, object)
  const bytes = encoding === 'json' ? object.bytes : Buffer.from(goJson(json))
  const type = { kind: gvk.kind, apiVersion: apiVersionOf(gvk) }
  return { gvk, object: { ...object, bytes }, json: { ...type, ...json } }
}

/** Objects of one batch. */
const batchSize = 64

function* batchesOf(all: readonly Entry[]): Generator<ListBatch> {
  for (let at = 0; at < all.length; at += batchSize)
    yield { objects: all.slice(at, at + batchSize).flatMap(({ item }) => item() ?? []) }
}

/** An object in JSON with its kind. */
interface ShownObject extends ObjectOfKind {
  readonly json: JsonObject
}

/** How a representation shows objects. */
interface Form {
  readonly listKind: (object: GVK) => GVK
  /** As `ListEnd.extra`. */
  readonly extra: string
  readonly item: (shown: ShownObject) => ApiObject
  /** The body of a get; absent: the object itself. */
  readonly single?: (shown: ShownObject) => Buffer
}

const wholeObjects: Form = { listKind, extra: '', item: ({ object }) => object }

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
  const single = (shown: ShownObject): Buffer => {
    const meta = { resourceVersion: shown.object.resourceVersion, continue: '' }
    const head = listHead('json', gvk, meta, extra, [])
    return Buffer.concat([head, item(shown).bytes, listTail('json')])
  }
  return { listKind: () => gvk, extra, item, single }
}

/** Those of a custom resource are in its definition, if any component has read it. */
function columnsOf(gvr: GVR, parts: Shown): readonly Column[] {
  const builtin = columnsOfBuiltin(gvr)
  if (builtin) return builtin
  const named = { gvr: customResourceDefinitions, namespace: '', name: qualifiedResource(gvr) }
  const record = newestRecord(named, parts)
  const definition = typeof record === 'object' ? jsonOf(record, parts) : undefined
  return definition ? customColumns(definition.json, gvr.version) : defaultColumns
}
