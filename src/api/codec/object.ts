import { asBuffer } from '../../base/bytes.ts'
import type { GVK } from '../kube/gvk.ts'
import type { Encoding, Projection } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import { apiObject as apiObjectInJson } from './json/identity.ts'
import { isTable, onlyObject, onlyRow, separateKind, tableOf, withKind } from './json/single.ts'
import { enveloped, openEnvelope } from './protobuf/envelope.ts'
import { apiObject as apiObjectInProtobuf } from './protobuf/identity.ts'

const newline = Buffer.from('\n')

/**
 * The object in the whole body of an answer that holds one. Throws `MalformedBody`. Of a Table of
 * one row the whole Table is the object's bytes, since its columns and its row are worth nothing
 * without each other.
 */
export function readObject(
  encoding: Encoding,
  projection: Projection,
  body: Uint8Array,
): { gvk: GVK; object: ApiObject } {
  if (encoding === 'protobuf') {
    const { gvk, raw } = openEnvelope(asBuffer(body))
    return { gvk, object: apiObjectInProtobuf(raw) }
  }
  const { gvk, bytes } = separateKind(onlyObject(asBuffer(body)), projection)
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
 * The reverse of `readObject`: the body the API server sends for it. A row that a list of Tables
 * holds becomes a Table of its own, without the columns, which the row does not know.
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
 * A row of a Table of many as `readObject` reads a Table of that object alone; `columns` are what
 * the other Table says beside its rows.
 */
export const tableOfRow = (gvk: GVK, row: ApiObject, columns: string): ApiObject => ({
  ...row,
  bytes: Buffer.concat(tableOf(gvk, row, columns)),
})
