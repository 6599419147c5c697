import type { Encoding, Shape } from '../kube/media-type.ts'

/** Within so much of an object, a list or an event it is said what it is. */
const openingBytes = 128

/** Whether so much of an answer tells its shape. */
export const tellsShape = (start: Buffer): boolean => start.byteLength >= openingBytes

/** The same of a watch, whose first event may be shorter and the only one for long. */
export const tellsShapeOfEvents = (encoding: Encoding, start: Buffer): boolean =>
  tellsShape(start) ||
  (encoding === 'json' ? closed.test(start.toString('latin1')) : isFrame(start))

/** An event, or something in it, that has come to its end; what it is stands before that. */
const closed = /\}\s*$/

/** A frame begins with its length in four bytes. */
const isFrame = (start: Buffer): boolean =>
  start.byteLength >= 4 && start.byteLength >= 4 + start.readUInt32BE(0)

/**
 * What was answered, by its opening: servers without tables or metadata answer with whole objects. Kinds of conversions are written at
 * the very start of an answer, and of each event of a watch, in either encoding.
 */
export function shapeOf(start: Buffer): Shape {
  const opening = start.subarray(0, openingBytes).toString('latin1')
  if (/"kind":\s*"Table"/.test(opening)) return 'table'
  return opening.includes('PartialObjectMetadata') ? 'metadata' : 'object'
}
