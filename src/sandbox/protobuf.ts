import { asBuffer } from '../base/bytes.ts'
import { enveloped, openEnvelope } from '../api/codec/protobuf/envelope.ts'
import { MessageReader } from '../api/codec/protobuf/message/decode.ts'
import { messageBytes } from '../api/codec/protobuf/message/encode.ts'
import { PathError } from '../api/codec/element.ts'
import { whole } from '../api/codec/protobuf/values.ts'
import { schemaOf, type MessageSchema } from '../api/codec/schema/schema.ts'
import { apiVersionOf, type GVK } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'

/**
 * Encodes an object or list byte for byte as the API server does, from the API server's JSON. Its
 * `kind` and `apiVersion` are those of `gvk`, whatever its members are. Throws a PathError for
 * a kind without a schema and for values that the schema does not allow.
 */
export function toProtobuf(gvk: GVK, object: JsonObject): Buffer {
  return enveloped(gvk, messageBytes(known(gvk), object))
}

/** The reverse: the JSON that the API server would show. Throws a PathError or a MalformedBody. */
export function fromProtobuf(bytes: Uint8Array): { gvk: GVK; object: JsonObject } {
  const { gvk, raw } = openEnvelope(asBuffer(bytes))
  const message = new MessageReader().message(known(gvk), [whole(raw)])
  const apiVersion = apiVersionOf(gvk)
  const { kind } = gvk
  const object = { kind, ...(apiVersion !== '' && { apiVersion }), ...message }
  return { gvk, object: kind.endsWith('List') ? withItems(object) : object }
}

function known(gvk: GVK): MessageSchema {
  const schema = schemaOf(gvk)
  if (!schema) throw new PathError(`${apiVersionOf(gvk)} ${gvk.kind} is known in JSON only`)
  return schema
}

/** Protobuf does not distinguish an empty list from none; the API server writes an empty one. */
const withItems = (list: JsonObject): JsonObject =>
  list['items'] === null ? { ...list, items: [] } : list
