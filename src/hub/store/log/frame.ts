import { crc32 } from 'node:zlib'
import type { LogRecord } from '../state/record.ts'
import { textOfScope, type ScopeKey } from '../state/address.ts'
import type { Segment, SegmentRecord } from './segments.ts'

/**
 * The log is a sequence of frames: a head of nine numbers, the record as JSON, and the bodies that
 * come with it. The numbers are `magic`, the lengths of record and bodies, `synced` and `scope` of
 * `Frame`, the checksums of record and bodies, a mark of the place, and a checksum of the head.
 */
const magic = 0x6e6f6465
const headLength = 36

export interface Frame {
  readonly record: Uint8Array
  readonly recordIsWhole: boolean
  /** Of the scope that the record changes; 0: of others, or of several. */
  readonly scope: number
  /** Up to here the segment was on the disk when the frame was written. */
  readonly synced: number
  /** Where its bodies begin. */
  readonly bodiesAt: number
  readonly bodiesChecksum: number
  readonly end: number
}

/** Identifies a scope in heads of frames. */
export const scopeMark = (scope: ScopeKey | undefined): number =>
  scope ? crc32(textOfScope(scope)) : 0

/** The scope that a record changes; `undefined`: others, or several. */
function scopeOfRecord(record: LogRecord | SegmentRecord): ScopeKey | undefined {
  if ('scope' in record) return record.scope
  return 'collection' in record ? record.collection : undefined
}

/** A record, and bodies that are written with it. */
export interface Unframed {
  readonly record: LogRecord | SegmentRecord
  readonly bodies?: readonly Uint8Array[]
}

/** The parts of a frame at `offset` of a segment, and where its bodies and itself end. */
export function framed(
  { record: of, bodies = [] }: Unframed,
  { id, synced }: Pick<Segment, 'id' | 'synced'>,
  offset: number,
): Pick<Frame, 'bodiesAt' | 'end'> & { readonly parts: readonly Uint8Array[] } {
  const record = Buffer.from(JSON.stringify(of))
  const head = Buffer.allocUnsafe(headLength)
  let [length, checksum] = [0, 0]
  for (const body of bodies) {
    length += body.byteLength
    checksum = crc32(body, checksum)
  }
  head.writeUInt32LE(magic, 0)
  head.writeUInt32LE(record.byteLength, 4)
  head.writeUInt32LE(length, 8)
  head.writeUInt32LE(synced, 12)
  head.writeUInt32LE(scopeMark(scopeOfRecord(of)), 16)
  head.writeUInt32LE(crc32(record), 20)
  head.writeUInt32LE(checksum, 24)
  head.writeUInt32LE(placeMark(id, offset), 28)
  head.writeUInt32LE(crc32(head.subarray(0, headLength - 4)), headLength - 4)
  const bodiesAt = offset + headLength + record.byteLength
  return { parts: [head, record, ...bodies], bodiesAt, end: bodiesAt + length }
}

/** A frame that was left elsewhere is none here. */
const placeMark = (segment: number, offset: number): number =>
  (Math.imul(segment, 0x9e3779b1) ^ offset) >>> 0

/** The frame at `offset` of a segment's bytes; `undefined`: there is none. */
export function frameAt(bytes: Buffer, segment: number, offset: number): Frame | undefined {
  if (offset + headLength > bytes.byteLength || bytes.readUInt32LE(offset) !== magic)
    return undefined
  const numbers = Array.from({ length: 9 }, (_, at) => bytes.readUInt32LE(offset + 4 * at))
  const [, length = 0, bodiesLength = 0, synced = 0, scope = 0, checksum, bodiesChecksum = 0] =
    numbers
  if (numbers[7] !== placeMark(segment, offset)) return undefined
  if (numbers[8] !== crc32(bytes.subarray(offset, offset + headLength - 4))) return undefined
  const begin = offset + headLength
  const end = begin + length + bodiesLength
  if (end > bytes.byteLength) return undefined
  const record = bytes.subarray(begin, begin + length)
  return {
    record,
    recordIsWhole: crc32(record) === checksum,
    scope,
    synced,
    bodiesAt: begin + length,
    bodiesChecksum,
    end,
  }
}

export const bodiesAreWhole = (bytes: Buffer, { bodiesAt, end, bodiesChecksum }: Frame): boolean =>
  crc32(bytes.subarray(bodiesAt, end)) === bodiesChecksum

/** The next frame after `offset`, where there is none; `undefined`: nor is there one later. */
export function nextFrame(bytes: Buffer, segment: number, offset: number): number | undefined {
  const mark = Buffer.alloc(4)
  mark.writeUInt32LE(magic)
  for (let at = bytes.indexOf(mark, offset + 1); at >= 0; at = bytes.indexOf(mark, at + 1))
    if (frameAt(bytes, segment, at)) return at
  return undefined
}
