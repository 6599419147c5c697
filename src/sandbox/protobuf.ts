import { asBuffer } from '../base/bytes.ts'
import { MalformedBody } from '../api/codec/malformed-body.ts'
import { MessageReader } from '../api/codec/protobuf/message/decode.ts'
import { writeMessage } from '../api/codec/protobuf/message/encode.ts'
import { ProtobufError } from '../api/codec/protobuf/message/error.ts'
import { BackwardWriter } from '../api/codec/protobuf/message/writer.ts'
import { whole } from '../api/codec/protobuf/values.ts'
import { Fields, lengthType } from '../api/codec/protobuf/wire.ts'
import { schemaOf, type MessageSchema } from '../api/codec/schema/schema.ts'
import { apiVersionOf, parseApiVersion, type GVK } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'

export { ProtobufError } from '../api/codec/protobuf/message/error.ts'

/** Precedes every object, before its envelope (apimachinery pkg/runtime/serializer/protobuf). */
const magic = Buffer.from('k8s\0')

/**
 * Encodes an object or list byte for byte as the API server does, from the API server's JSON. Its
 * `kind` and `apiVersion` are those of `gvk`, whatever its members are. Throws a ProtobufError for
 * a kind without a schema and for values that the schema does not allow.
 */
export function toProtobuf(gvk: GVK, object: JsonObject): Buffer {
  const out = new BackwardWriter()
  // Content encoding and content type are written although nothing uses them.
  writeBytes(out, 4, () => undefined)
  writeBytes(out, 3, () => undefined)
  writeBytes(out, 2, () => writeMessage(out, known(gvk), object))
  writeBytes(out, 1, () => {
    writeBytes(out, 2, () => out.string(gvk.kind))
    writeBytes(out, 1, () => out.string(apiVersionOf(gvk)))
  })
  out.bytes(magic)
  return out.finish()
}

/**
 * The reverse: what the API server would show in JSON. Throws a ProtobufError for all that is no
 * such object.
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

/** One frame of a watch: its length, then the event around the object's envelope. */
export function watchEventFrame(type: string, envelope: Uint8Array): Buffer {
  const out = new BackwardWriter()
  writeBytes(out, 2, () => writeBytes(out, 1, () => out.bytes(envelope)))
  writeBytes(out, 1, () => out.string(type))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(out.length)
  out.bytes(length)
  return out.finish()
}

function known(gvk: GVK): MessageSchema {
  const schema = schemaOf(gvk)
  if (!schema) throw new ProtobufError(`${apiVersionOf(gvk)} ${gvk.kind} is known in JSON only`)
  return schema
}

function writeBytes(out: BackwardWriter, field: number, content: () => void): void {
  const before = out.length
  content()
  out.delimit(before)
  out.tag(field, 2)
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
