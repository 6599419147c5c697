import { asBuffer } from '../../base/bytes.ts'
import type { GVK } from '../kube/gvk.ts'
import type { Encoding, Projection } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import {
  apiObject as apiObjectInJson,
  checkOnlyObject,
  isTable,
  onlyRow,
  separateKind,
  tableOf,
  trimmed,
  withKind,
} from './json/single.ts'
import { enveloped, openEnvelope } from './protobuf/envelope.ts'
import { apiObject as apiObjectInProtobuf } from './protobuf/identity.ts'

const newline = Buffer.from('\n')

/** An object with its kind. */
export interface ReadObject {
  readonly gvk: GVK
  readonly object: ApiObject
}

/**
 * The object in a complete body. Throws `MalformedBody`. For a Table of one row the bytes are the
 * whole Table, as row and columns are useless without each other.
 */
export function readObject(
  encoding: Encoding,
  projection: Projection,
  body: Uint8Array,
): ReadObject {
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
): ReadObject {
  if (encoding === 'protobuf') {
    const { gvk, raw } = openEnvelope(asBuffer(body))
    return { gvk, object: apiObjectInProtobuf(raw) }
  }
  const { gvk, bytes } = separateKind(trimmed(asBuffer(body)), projection)
  if (projection !== 'table') return { gvk, object: apiObjectInJson(projection, bytes) }
  const row = onlyRow(bytes)
  const shown = row && apiObjectInJson('table', row)
  return {
    gvk,
    object: shown
      ? { ...shown, bytes }
      : { namespace: '', name: '', uid: '', resourceVersion: '', bytes },
  }
}

/**
 * The reverse of `readObject`: the body that the API server sends. A row from a list of Tables
 * becomes a Table of its own, without columns.
 */
export function objectBody(
  encoding: Encoding,
  projection: Projection,
  gvk: GVK,
  object: ApiObject,
): Buffer {
  const bytes = asBuffer(object.bytes)
  if (encoding === 'protobuf') return enveloped(gvk, bytes)
  const whole =
    projection === 'table' && !isTable(bytes) ? tableOf(gvk, object) : withKind(gvk, bytes)
  return Buffer.concat([...whole, newline])
}

/**
 * A row of a larger Table as `readObject` returns a Table of that object alone; `columns` are the
 * other members of the larger Table.
 */
export const tableOfRow = (gvk: GVK, row: ApiObject, columns: string): ApiObject => ({
  ...row,
  bytes: Buffer.concat(tableOf(gvk, row, columns)),
})
