import { apiVersionOf, parseApiVersion, type GVK } from '../../kube/gvk.ts'
import { MalformedBody } from '../malformed-body.ts'
import { bytesField, Fields, lengthHeader, stringField } from './wire.ts'

/** The first bytes of a protobuf body (apimachinery pkg/runtime/serializer/protobuf). */
export const magic = Buffer.from('k8s\0')

/** Go ends each envelope with an empty contentEncoding and contentType. */
export const envelopeEnd = Buffer.from([0x1a, 0x00, 0x22, 0x00])

export const typeMetaNumber = 1
export const rawNumber = 2

/** The kind in the typeMeta of an envelope. Discovery of the core group has no apiVersion. */
export function readTypeMeta(bytes: Buffer): GVK {
  let apiVersion = ''
  let kind = ''
  for (const fields = new Fields(bytes); fields.next();) {
    if (fields.number === 1) apiVersion = fields.string
    else if (fields.number === 2) kind = fields.string
  }
  if (kind === '') throw new MalformedBody('an envelope that does not say its kind')
  return { ...parseApiVersion(apiVersion), kind }
}

/** The bytes before the object in its envelope; `length` is the length of the object. */
export function envelopeHead(gvk: GVK, length: number): Buffer {
  const typeMeta = Buffer.concat([stringField(1, apiVersionOf(gvk)), stringField(2, gvk.kind)])
  return Buffer.concat([
    magic,
    bytesField(typeMetaNumber, typeMeta),
    lengthHeader(rawNumber, length),
  ])
}

/** The bytes of an object in its envelope, as Go writes it. */
export const envelopeParts = (gvk: GVK, object: Uint8Array): readonly Uint8Array[] => [
  envelopeHead(gvk, object.byteLength),
  object,
  envelopeEnd,
]

/** An object in its envelope. */
export const enveloped = (gvk: GVK, object: Uint8Array): Buffer =>
  Buffer.concat(envelopeParts(gvk, object))

/** The kind and the object of a complete envelope. */
export function openEnvelope(bytes: Buffer): { gvk: GVK; raw: Buffer } {
  if (!bytes.subarray(0, 4).equals(magic)) throw new MalformedBody('no envelope')
  let gvk: GVK | undefined
  let raw: Buffer | undefined
  for (const fields = new Fields(bytes, 4); fields.next();) {
    if (fields.number === typeMetaNumber) gvk = readTypeMeta(fields.value)
    else if (fields.number === rawNumber) raw = fields.value
  }
  if (!gvk || !raw) throw new MalformedBody('an envelope that is not whole')
  return { gvk, raw }
}
