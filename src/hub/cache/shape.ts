import type { Encoding, Projection } from '../../api/kube/media-type.ts'

/** The kind of an object, a list or an event stands within its first so many bytes. */
const openingBytes = 128

/** Whether so much of an answer tells its shape. */
export const tellsShape = (start: Buffer): boolean => start.byteLength >= openingBytes

/** The same of a watch, whose first event may be shorter and the only one for long. */
export const tellsShapeOfEvents = (encoding: Encoding, start: Buffer): boolean =>
  tellsShape(start) ||
  (encoding === 'json' ? closed.test(start.toString('latin1')) : isFrame(start))

/** An event, or an object in it, that is complete: its kind stands before that end. */
const closed = /\}\s*$/

/** A frame begins with its length in four bytes. */
const isFrame = (start: Buffer): boolean =>
  start.byteLength >= 4 && start.byteLength >= 4 + start.readUInt32BE(0)

/**
 * The shape of an answer, by its opening: a server that makes no tables or metadata answers with
 * whole objects. In either encoding the kind of a conversion stands at the very start of an answer,
 * and of each event of a watch.
 */
export function shapeOf(start: Buffer): Projection {
  const opening = start.subarray(0, openingBytes).toString('latin1')
  if (/"kind":\s*"Table"/.test(opening)) return 'table'
  return opening.includes('PartialObjectMetadata') ? 'metadata' : 'object'
}
