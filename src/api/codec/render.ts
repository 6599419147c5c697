import { lengthOf } from '../../base/bytes.ts'
import { apiVersionOf, type GVK } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject, ListMeta } from '../kube/object.ts'
import type { Status } from '../kube/status.ts'
import { goJson } from './json/write.ts'
import type { ListBatch } from './list.ts'
import { enveloped, envelopeEnd, envelopeHead } from './protobuf/envelope.ts'
import { itemsNumber } from './protobuf/list-decoder.ts'
import { writeStatus } from './protobuf/status.ts'
import { bytesField, lengthHeader, stringField, varintLength } from './protobuf/wire.ts'

const comma = Buffer.from(',')
const jsonTail = Buffer.from(']}\n')

/**
 * The bytes of a list before its first object. `objects` are all objects of the list: protobuf
 * writes their length first.
 */
export function listHead(
  encoding: Encoding,
  gvk: GVK,
  meta: ListMeta,
  extra: string,
  objects: readonly ApiObject[],
): Buffer {
  if (encoding === 'protobuf') {
    const metadata = bytesField(1, listMeta(meta.resourceVersion, meta.continue))
    const length = metadata.length + listItemsLength(encoding, objects)
    return Buffer.concat([envelopeHead(gvk, length), metadata])
  }
  const members = [
    `"kind":${goJson(gvk.kind)}`,
    `"apiVersion":${goJson(apiVersionOf(gvk))}`,
    `"metadata":${goJson({
      resourceVersion: meta.resourceVersion,
      ...(meta.continue !== '' && { continue: meta.continue }),
    })}`,
    ...(extra === '' ? [] : [extra]),
    `"${gvk.kind === 'Table' ? 'rows' : 'items'}":[`,
  ]
  return Buffer.from(`{${members.join(',')}`)
}

/** The message of a ListMeta. */
const listMeta = (resourceVersion: string, token: string): Buffer =>
  Buffer.concat([stringField(1, ''), stringField(2, resourceVersion), stringField(3, token)])

/** The bytes of a list after its last object. */
export const listTail = (encoding: Encoding): Buffer =>
  encoding === 'protobuf' ? envelopeEnd : jsonTail

/** The separator between the bytes of two batches. */
export const listSeparator = (encoding: Encoding): readonly Uint8Array[] =>
  encoding === 'protobuf' ? [] : [comma]

/** The bytes of objects in a list, as `ListBatch.bytes`. */
export function listItems(encoding: Encoding, objects: readonly ApiObject[]): Uint8Array[] {
  return objects.flatMap(({ bytes }, at) =>
    encoding === 'protobuf'
      ? [lengthHeader(itemsNumber, bytes.byteLength), bytes]
      : at === 0
        ? [bytes]
        : [comma, bytes],
  )
}

/** The objects as a batch, copied into one buffer in which nothing else is. */
export function ownBatch(encoding: Encoding, objects: readonly ApiObject[]): Required<ListBatch> {
  const parts = listItems(encoding, objects)
  const bytes = Buffer.allocUnsafeSlow(lengthOf(parts))
  const copies = new Map<Uint8Array, Uint8Array>()
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    copies.set(part, bytes.subarray(at, at + part.byteLength))
    at += part.byteLength
  }
  const copied = objects.map((each) => ({ ...each, bytes: copies.get(each.bytes) ?? each.bytes }))
  return { objects: copied, bytes: [bytes] }
}

/** The length of what `listItems` returns. */
export function listItemsLength(encoding: Encoding, objects: readonly ApiObject[]): number {
  let length = encoding === 'json' ? Math.max(objects.length - 1, 0) : 0
  for (const { bytes } of objects) {
    length += bytes.byteLength
    if (encoding === 'protobuf') length += 1 + varintLength(bytes.byteLength)
  }
  return length
}

/** A Status as the body of an answer. */
export const statusBody = (encoding: Encoding, status: Status): Buffer =>
  encoding === 'protobuf'
    ? enveloped({ group: '', version: 'v1', kind: 'Status' }, writeStatus(status))
    : Buffer.from(`${goJson(status)}\n`)
