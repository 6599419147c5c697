import { protobufFrame } from '../api/codec/event-frame.ts'
import { schemaOf } from '../api/codec/schema/schema.ts'
import type { GVK } from '../api/kube/gvk.ts'
import type { Json, JsonObject } from '../api/kube/json.ts'
import { initialEventsEndAnnotation } from '../api/kube/object.ts'
import type { Status } from '../api/kube/status.ts'
import { columnsOfBuiltin } from '../api/kube/tables/columns.ts'
import { defaultColumns } from '../api/kube/tables/custom.ts'
import { columnDefinitions, partialMetadata, rowOf } from '../api/kube/tables/table.ts'
import { goJson } from '../api/codec/json/write.ts'
import { listObject, listText, objectText } from './encoding.ts'
import { apiVersionOfKind, gvkOf, listGvkOf, type Kind } from './kinds.ts'
import type { ListResult } from './list.ts'
import type { ResponseFormat } from './negotiation.ts'
import { sortedDeep, withoutType, type KubeObject } from './object.ts'
import { fromProtobuf, toProtobuf } from './protobuf.ts'

const metaGvk = (kind: string, version: string): GVK => ({ group: 'meta.k8s.io', version, kind })
export const statusGvk: GVK = { group: '', version: 'v1', kind: 'Status' }

/** Whether a kind has a protobuf form here. */
export const hasProtobuf = (gvk: GVK): boolean => schemaOf(gvk) !== undefined

/** A value in the encoding of an answer. */
export function encode(gvk: GVK, value: JsonObject, format: ResponseFormat): Buffer {
  if (format.encoding === 'protobuf') return toProtobuf(gvk, value)
  return Buffer.from(format.pretty ? goJson(value, 2) : `${goJson(value)}\n`)
}

/** An object in the negotiated format. */
export function renderObject(kind: Kind, object: KubeObject, format: ResponseFormat): Buffer {
  if (format.projection !== 'object') {
    const { gvk, value } = converted(kind, object, format, true)
    return encode(gvk, value, format)
  }
  if (format.encoding !== 'json' || format.pretty) {
    return encode(gvkOf(kind), object, format)
  }
  return Buffer.from(`${objectText(object)}\n`)
}

/** A list in the negotiated format. */
export function renderList(kind: Kind, listed: ListResult, format: ResponseFormat): Buffer {
  const metadata: JsonObject = {
    resourceVersion: listed.version,
    ...(listed.continue !== '' && { continue: listed.continue }),
    ...(listed.remaining !== undefined && { remainingItemCount: listed.remaining }),
  }
  const { version, projection, encoding, pretty } = format
  if (projection === 'table') {
    const table = tableOf(kind, listed.objects, metadata, format, true)
    return encode(metaGvk('Table', version), table, format)
  }
  if (projection === 'metadata') {
    const gvk = metaGvk('PartialObjectMetadataList', version)
    const items = listed.objects.map((object) => partialMetadata(object, version))
    return encode(gvk, listObject(gvk, metadata, items), format)
  }
  if (encoding === 'json' && !pretty) {
    return Buffer.from(`${listText(kind, metadata, listed.objects)}\n`)
  }
  const items = kind.custom ? listed.objects : listed.objects.map(withoutType)
  const list = listObject(listGvkOf(kind), metadata, items)
  return encode(listGvkOf(kind), kind.custom ? sorted(list) : list, format)
}

const sorted = (list: JsonObject): JsonObject => sortedDeep(list) as JsonObject

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'

/** One frame of a watch. `first`: a Table carries its columns only then. */
export function renderEvent(
  kind: Kind,
  type: EventType,
  object: KubeObject,
  format: ResponseFormat,
  first: boolean,
): Buffer {
  if (format.projection === 'object') {
    return format.encoding === 'protobuf'
      ? protobufFrame(type, envelopeOf(kind, object))
      : frame(type, objectText(object))
  }
  const { gvk, value } = converted(kind, object, format, first)
  return format.encoding === 'protobuf'
    ? protobufFrame(type, toProtobuf(gvk, value))
    : frame(type, goJson(value))
}

export const renderErrorEvent = (status: Status, { encoding }: ResponseFormat): Buffer => {
  const value = status as unknown as JsonObject
  return encoding === 'protobuf'
    ? protobufFrame('ERROR', toProtobuf(statusGvk, value))
    : frame('ERROR', goJson(value))
}

const frame = (type: string, object: string): Buffer =>
  Buffer.from(`{"type":"${type}","object":${object}}\n`)

// An object never changes, so neither do its bytes.
const envelopes = new WeakMap<KubeObject, Buffer>()

function envelopeOf(kind: Kind, object: KubeObject): Buffer {
  const known = envelopes.get(object)
  if (known) return known
  const made = toProtobuf(gvkOf(kind), object)
  envelopes.set(object, made)
  return made
}

function converted(
  kind: Kind,
  object: KubeObject,
  format: ResponseFormat,
  withColumns: boolean,
): { gvk: GVK; value: JsonObject } {
  const { version } = format
  if (format.projection === 'metadata') {
    return {
      gvk: metaGvk('PartialObjectMetadata', version),
      value: partialMetadata(object, version),
    }
  }
  const { resourceVersion } = object.metadata
  return {
    gvk: metaGvk('Table', version),
    value: tableOf(kind, [object], { resourceVersion }, format, withColumns),
  }
}

function tableOf(
  kind: Kind,
  objects: readonly KubeObject[],
  metadata: JsonObject,
  { version, included }: ResponseFormat,
  withColumns: boolean,
): JsonObject {
  const columns = columnsOfBuiltin(kind.gvr) ?? defaultColumns
  const carried = (object: KubeObject): Json =>
    included === 'None' ? null : included === 'Object' ? object : partialMetadata(object, version)
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${version}`,
    metadata,
    columnDefinitions: withColumns ? columnDefinitions(columns) : null,
    rows: objects.map((object) => rowOf(columns, object, carried(object))),
  }
}

/**
 * The object of a bookmark: nothing but a version, and the members that an empty object of the kind
 * shows.
 */
export function bookmarkObject(kind: Kind, version: string, initialEventsEnd: boolean): KubeObject {
  const metadata: JsonObject = {
    resourceVersion: version,
    ...(initialEventsEnd && { annotations: { [initialEventsEndAnnotation]: 'true' } }),
  }
  const bare: JsonObject = { kind: kind.kind, apiVersion: apiVersionOfKind(kind), metadata }
  return (kind.custom ? sorted(bare) : canonical(gvkOf(kind), bare)) as KubeObject
}

/**
 * The object with every member the server shows, in the server's order, and none it does not know.
 * Throws a PathError for values of a wrong type. Kinds without a schema stay as they are.
 */
export const canonical = (gvk: GVK, object: JsonObject): JsonObject =>
  hasProtobuf(gvk) ? fromProtobuf(toProtobuf(gvk, object)).object : object
