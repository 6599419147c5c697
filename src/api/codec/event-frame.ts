import { asBuffer, lengthOf } from '../../base/bytes.ts'
import type { GVK } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import { initialEventsEndAnnotation, type ApiObject } from '../kube/object.ts'
import type { Status } from '../kube/status.ts'
import { withKind } from './json/single.ts'
import { goJson } from './json/write.ts'
import { envelopeParts } from './protobuf/envelope.ts'
import { messageBytes } from './protobuf/message/encode.ts'
import { lengthHeader, stringField } from './protobuf/wire.ts'
import { statusBody } from './render.ts'
import { partialObjectMetadata } from './schema/schema.ts'
import type { BookmarkEvent, ObjectEvent, WatchEvent } from './watch.ts'

/**
 * The frame of an event, encoded again: a frame that the event carries is not used. `gvk` is the
 * kind of the objects.
 */
export function eventFrame(encoding: Encoding, gvk: GVK, event: WatchEvent): Buffer {
  switch (event.type) {
    case 'BOOKMARK':
      return bookmarkFrame(encoding, gvk, event)
    case 'ERROR':
      return errorFrame(encoding, event.status)
    case 'UNREAD':
      return asBuffer(event.frame)
    default:
      return watchFrame(encoding, gvk, event.type, event.object)
  }
}

/** ADDED, MODIFIED or DELETED. */
export function watchFrame(
  encoding: Encoding,
  gvk: GVK,
  type: ObjectEvent['type'],
  object: ApiObject,
): Buffer {
  const bytes = asBuffer(object.bytes)
  if (encoding === 'protobuf') return protobufFrame(type, ...envelopeParts(gvk, bytes))
  return jsonFrame(type, withKind(gvk, bytes))
}

/**
 * An object of the watched kind with a resource version only, and with the annotation that ends the
 * initial events if it does.
 */
export function bookmarkFrame(
  encoding: Encoding,
  gvk: GVK,
  { resourceVersion, initialEventsEnd }: Omit<BookmarkEvent, 'type'>,
): Buffer {
  const metadata = {
    resourceVersion,
    ...(initialEventsEnd && { annotations: { [initialEventsEndAnnotation]: 'true' } }),
  }
  if (encoding === 'protobuf') {
    const object = messageBytes(partialObjectMetadata, { metadata })
    return protobufFrame('BOOKMARK', ...envelopeParts(gvk, object))
  }
  return jsonFrame('BOOKMARK', withKind(gvk, Buffer.from(goJson({ metadata }))))
}

/** The last event of a watch that cannot go on. */
export function errorFrame(encoding: Encoding, status: Status): Buffer {
  const body = statusBody(encoding, status)
  if (encoding === 'protobuf') return protobufFrame('ERROR', body)
  return jsonFrame('ERROR', [body.subarray(0, -1)])
}

const jsonFrame = (type: string, object: readonly Uint8Array[]): Buffer =>
  Buffer.concat([Buffer.from(`{"type":"${type}","object":`), ...object, Buffer.from('}\n')])

/** One frame of a watch in protobuf: its length, then the event around the object's envelope. */
export function protobufFrame(type: string, ...envelope: readonly Uint8Array[]): Buffer {
  const bytes = lengthOf(envelope)
  const raw = lengthHeader(1, bytes)
  const head = [stringField(1, type), lengthHeader(2, raw.byteLength + bytes), raw]
  const length = Buffer.alloc(4)
  length.writeUInt32BE(lengthOf(head) + bytes)
  return Buffer.concat([length, ...head, ...envelope])
}
