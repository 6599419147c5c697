import { asBuffer } from '../base/bytes.ts'
import { MalformedBody } from '../api/codec/malformed-body.ts'
import { enveloped, magic } from '../api/codec/protobuf/envelope.ts'
import { MessageReader } from '../api/codec/protobuf/message/decode.ts'
import { messageBytes } from '../api/codec/protobuf/message/encode.ts'
import { ProtobufError } from '../api/codec/protobuf/message/error.ts'
import { whole } from '../api/codec/protobuf/values.ts'
import { Fields, lengthType } from '../api/codec/protobuf/wire.ts'
import { schemaOf, type MessageSchema } from '../api/codec/schema/schema.ts'
import { apiVersionOf, parseApiVersion, type GVK } from '../api/kube/gvk.ts'
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
    return readEnveloped(asBuffer(bytes))
  } catch (cause) {
    if (!(cause instanceof MalformedBody)) throw cause
    throw new ProtobufError(cause.message, { cause })
  }
}

function readEnveloped(body: Buffer): { gvk: GVK; object: JsonObject } {
  if (!body.subarray(0, magic.length).equals(magic))
    throw new ProtobufError('the bytes do not begin as objects do')
  const envelope = parts(body.subarray(magic.length))
  const typeMeta = parts(envelope[1] ?? Buffer.alloc(0))
  const kind = (typeMeta[2] ?? '').toString()
  const gvk = { ...parseApiVersion((typeMeta[1] ?? '').toString()), kind }
  const message = new MessageReader().message(known(gvk), [whole(envelope[2] ?? Buffer.alloc(0))])
  const apiVersion = apiVersionOf(gvk)
  const object = { kind, ...(apiVersion !== '' && { apiVersion }), ...message }
  return { gvk, object: kind.endsWith('List') ? withItems(object) : object }
}

function known(gvk: GVK): MessageSchema {
  const schema = schemaOf(gvk)
  if (!schema) throw new ProtobufError(`${apiVersionOf(gvk)} ${gvk.kind} is known in JSON only`)
  return schema
}

/** The first two fields of a message of bytes, by number. */
function parts(message: Buffer): { 1?: Buffer; 2?: Buffer } {
  const found: { 1?: Buffer; 2?: Buffer } = {}
  for (const fields = new Fields(message); fields.next();) {
    const { number, type } = fields
    if ((number === 1 || number === 2) && type === lengthType) found[number] = fields.value
  }
  return found
}

/** Protobuf does not distinguish an empty list from none; the API server writes an empty one. */
const withItems = (list: JsonObject): JsonObject =>
  list['items'] === null ? { ...list, items: [] } : list
