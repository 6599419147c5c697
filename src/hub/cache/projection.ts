import type { Encoding, Projection } from '../../api/kube/media-type.ts'

/** The first bytes of an object, a list or an event contain its kind. */
const openingBytes = 128

/** Whether so much of an answer determines its projection. */
export const showsProjection = (start: Buffer): boolean => start.byteLength >= openingBytes

/** The same for a watch, whose first event may be shorter, and the only one for a long time. */
export const showsEventProjection = (encoding: Encoding, start: Buffer): boolean =>
  showsProjection(start) ||
  (encoding === 'json' ? closed.test(start.toString('latin1')) : isFrame(start))

/** A complete event, or object in it: its kind comes before the end. */
const closed = /\}\s*$/

/** A frame begins with its length in four bytes. */
const isFrame = (start: Buffer): boolean =>
  start.byteLength >= 4 && start.byteLength >= 4 + start.readUInt32BE(0)

/**
 * The projection of an answer, by its first bytes: a server that makes no tables or metadata
 * answers with whole objects. In either encoding the kind of a conversion comes at the very
 * beginning of an answer, and of each event of a watch.
 */
export function projectionOf(start: Buffer): Projection {
  const opening = start.subarray(0, openingBytes).toString('latin1')
  if (/"kind":\s*"Table"/.test(opening)) return 'table'
  return opening.includes('PartialObjectMetadata') ? 'metadata' : 'object'
}
