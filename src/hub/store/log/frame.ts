import { crc32 } from 'node:zlib'
import { scopeOfRecord, type LogRecord, type SegmentRecord } from './record.ts'
import { textOfScope, type ScopeKey } from './address.ts'

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

/** A record with its bodies, to be written anywhere. */
export interface Encoded {
  readonly record: Buffer
  readonly bodies: readonly Uint8Array[]
  readonly bodiesLength: number
  readonly length: number
  readonly scope: number
}

export function encode(of: LogRecord | SegmentRecord, bodies: readonly Uint8Array[] = []): Encoded {
  const record = Buffer.from(JSON.stringify(of))
  const bodiesLength = bodies.reduce((sum, { byteLength }) => sum + byteLength, 0)
  const length = headLength + record.byteLength + bodiesLength
  return { record, bodies, bodiesLength, length, scope: scopeMark(scopeOfRecord(of)) }
}

/** The parts of a frame at `offset` of a segment. */
export function framed(of: Encoded, segment: number, offset: number, synced: number): Uint8Array[] {
  const head = Buffer.allocUnsafe(headLength)
  let checksum = 0
  for (const body of of.bodies) checksum = crc32(body, checksum)
  const numbers = [
    magic,
    of.record.byteLength,
    of.bodiesLength,
    synced,
    of.scope,
    crc32(of.record),
    checksum,
    placeMark(segment, offset),
  ]
  for (const [at, number] of numbers.entries()) head.writeUInt32LE(number, 4 * at)
  head.writeUInt32LE(crc32(head.subarray(0, headLength - 4)), headLength - 4)
  return [head, of.record, ...of.bodies]
}

/** Where the bodies of a frame at `offset` begin. */
export const bodiesAt = (of: Encoded, offset: number): number =>
  offset + headLength + of.record.byteLength

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
