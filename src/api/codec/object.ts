import { asBuffer } from '../../base/bytes.ts'
import type { GVK } from '../kube/gvk.ts'
import type { Encoding, Projection } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import {
  apiObject as apiObjectInJson,
  checkOnlyObject,
  separateKind,
  trimmed,
  withKind,
} from './json/single.ts'
import { enveloped, openEnvelope } from './protobuf/envelope.ts'
import { apiObject as apiObjectInProtobuf } from './protobuf/identity.ts'

const newline = Buffer.from('\n')

/** An object with its kind. */
export interface ObjectOfKind {
  readonly gvk: GVK
  readonly object: ApiObject
}

/** The same with the encoding of its bytes. */
export interface EncodedObject extends ObjectOfKind {
  readonly encoding: Encoding
}

/** The object in a complete body. Throws `MalformedBody`. */
export function readObject(
  encoding: Encoding,
  projection: Projection,
  body: Uint8Array,
): ObjectOfKind {
  checkBody(encoding, body)
  return openObject(encoding, projection, body)
}

/** Throws `MalformedBody` where the body is not one object, as far as JSON is scanned. */
export function checkBody(encoding: Encoding, body: Uint8Array): void {
  if (encoding === 'json') checkOnlyObject(trimmed(asBuffer(body)))
}

/**
 * As `readObject`, but a body that `checkBody` refuses may be read as well: to see whether an
 * object is stored needs no scan of all of it.
 */
export function openObject(
  encoding: Encoding,
  projection: Projection,
  body: Uint8Array,
): ObjectOfKind {
  if (encoding === 'protobuf') {
    const { gvk, raw } = openEnvelope(asBuffer(body))
    return { gvk, object: apiObjectInProtobuf(raw) }
  }
  const { gvk, bytes } = separateKind(trimmed(asBuffer(body)), projection)
  return { gvk, object: apiObjectInJson(bytes) }
}

/** The reverse of `readObject`: the body that the API server sends. */
export function objectBody(encoding: Encoding, gvk: GVK, { bytes }: ApiObject): Buffer {
  const object = asBuffer(bytes)
  if (encoding === 'protobuf') return enveloped(gvk, object)
  return Buffer.concat([...withKind(gvk, object), newline])
}
