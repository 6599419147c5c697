import { asBuffer } from '../base/bytes.ts'
import { MalformedBody } from '../api/codec/malformed-body.ts'
import { enveloped, openEnvelope } from '../api/codec/protobuf/envelope.ts'
import { MessageReader } from '../api/codec/protobuf/message/decode.ts'
import { messageBytes } from '../api/codec/protobuf/message/encode.ts'
import { ProtobufError } from '../api/codec/protobuf/message/error.ts'
import { whole } from '../api/codec/protobuf/values.ts'
import { schemaOf, type MessageSchema } from '../api/codec/schema/schema.ts'
import { apiVersionOf, type GVK } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'

export { ProtobufError } from '../api/codec/protobuf/message/error.ts'

/**
 * Encodes an object or list byte for byte as the API server does, from the API server's JSON. Its
 * `kind` and `apiVersion` are those of `gvk`, whatever its members are. Throws a ProtobufError for
 * a kind without a schema and for values that the schema does not allow.
 */
export function toProtobuf(gvk: GVK, object: JsonObject): Buffer {
  return enveloped(gvk, messageBytes(known(gvk), object))
}

/**
 * The reverse: the JSON that the API server would show. Throws a ProtobufError for bytes that are
 * no such object.
 */
export function fromProtobuf(bytes: Uint8Array): { gvk: GVK; object: JsonObject } {
  try {
    const { gvk, raw } = openEnvelope(asBuffer(bytes))
    const message = new MessageReader().message(known(gvk), [whole(raw)])
    const apiVersion = apiVersionOf(gvk)
    const { kind } = gvk
    const object = { kind, ...(apiVersion !== '' && { apiVersion }), ...message }
    return { gvk, object: kind.endsWith('List') ? withItems(object) : object }
  } catch (cause) {
    if (!(cause instanceof MalformedBody)) throw cause
    throw new ProtobufError(cause.message, { cause })
  }
}

function known(gvk: GVK): MessageSchema {
  const schema = schemaOf(gvk)
  if (!schema) throw new ProtobufError(`${apiVersionOf(gvk)} ${gvk.kind} is known in JSON only`)
  return schema
}

/** Protobuf does not distinguish an empty list from none; the API server writes an empty one. */
const withItems = (list: JsonObject): JsonObject =>
  list['items'] === null ? { ...list, items: [] } : list
