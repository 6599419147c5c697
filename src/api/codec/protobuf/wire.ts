import { MalformedBody } from '../malformed-body.ts'

export const varintType = 0
const fixed64Type = 1
export const lengthType = 2
const fixed32Type = 5

/**
 * Iterates over the fields of one complete message, one `next` each. Throws `MalformedBody` for
 * bytes that are no message.
 */
export class Fields implements Header {
  readonly bytes: Buffer
  readonly #limit: number
  /** The position of the field's tag. */
  start: number
  number = 0
  type = 0
  valueStart: number
  valueEnd: number

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.bytes = bytes
    this.start = this.valueStart = this.valueEnd = start
    this.#limit = end
  }

  next(): boolean {
    const at = this.valueEnd
    if (at === this.#limit) return false
    const isRead = readHeader(this.bytes, at, this.#limit, this)
    if (!isRead || this.valueEnd > this.#limit) throw new MalformedBody('a field does not end')
    this.start = at
    return true
  }

  /** The length-delimited value as text; '' for other wire types. */
  get string(): string {
    return this.type === lengthType
      ? this.bytes.toString('utf8', this.valueStart, this.valueEnd)
      : ''
  }

  get value(): Buffer {
    return this.bytes.subarray(this.valueStart, this.valueEnd)
  }

  get whole(): Buffer {
    return this.bytes.subarray(this.start, this.valueEnd)
  }
}

/** Tag and length of a field; its end may be beyond the received bytes. */
export interface Header {
  number: number
  type: number
  /** The value, without tag and length. */
  valueStart: number
  valueEnd: number
}

/** Field numbers have 29 bits (protobuf's language guide, "Assigning Field Numbers"). */
const largestNumber = 2 ** 29 - 1

/**
 * Reads into `header`: one for each field would be a tenth of what a list allocates. False if
 * `bytes` end before tag and length, or before the end of a varint.
 */
export function readHeader(bytes: Buffer, at: number, limit: number, header: Header): boolean {
  const tagEnd = varintEnd(bytes, at, limit)
  if (tagEnd < 0) return false
  const tag = unsignedVarint(bytes, at, tagEnd)
  const number = Math.floor(tag / 8)
  const type = tag % 8
  if (number === 0 || number > largestNumber) throw new MalformedBody('a field without a number')
  header.number = number
  header.type = type
  header.valueStart = tagEnd
  header.valueEnd = tagEnd + (type === fixed64Type ? 8 : 4)
  if (type === fixed64Type || type === fixed32Type) return true
  if (type !== varintType && type !== lengthType) {
    throw new MalformedBody('a field of an unknown wire type')
  }
  const end = varintEnd(bytes, tagEnd, limit)
  if (end < 0) return false
  header.valueEnd = end
  if (type === varintType) return true
  header.valueStart = end
  header.valueEnd = end + unsignedVarint(bytes, tagEnd, end)
  return true
}

/** The index after the varint at `from`, or -1 if it reaches `limit`. */
export function varintEnd(bytes: Buffer, from: number, limit: number): number {
  for (let at = from; at < limit; at++) {
    if ((bytes[at] as number) < 0x80) return at + 1
    if (at - from >= 9) throw new MalformedBody('a number of more than ten bytes')
  }
  return -1
}

function unsignedVarint(bytes: Buffer, start: number, end: number): number {
  let value = 0
  for (let at = end - 1; at >= start; at--) value = value * 128 + ((bytes[at] as number) & 0x7f)
  if (!Number.isSafeInteger(value)) throw new MalformedBody('a number too large')
  return value
}

/** Two's complement in 64 bits, as protobuf writes int32 and int64; inexact beyond 2^53. */
export function signedVarint(bytes: Buffer, start: number): number {
  let low = 0
  let high = 0
  for (let at = start, bit = 0; bit < 70; at++, bit += 7) {
    const byte = bytes[at] as number
    const bits = byte & 0x7f
    if (bit < 28) low |= bits << bit
    else if (bit === 28) {
      low |= bits << 28
      high |= bits >>> 4
    } else high |= bits << (bit - 32)
    if (byte < 0x80) break
  }
  return high * 2 ** 32 + (low >>> 0)
}

/** The varint of an integer; negative ones take ten bytes, as complements in 64 bits. */
export function varint(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(varintLength(value))
  putVarint(bytes, 0, value)
  return bytes
}

/** Writes the varint of an integer into `bytes` at `at`. */
export function putVarint(bytes: Buffer, at: number, value: number): void {
  if (value < 0) return putNegative(bytes, at, value)
  let rest = value
  let next = at
  for (; rest >= 128; next++) {
    bytes[next] = (rest % 128) | 0x80
    rest = Math.floor(rest / 128)
  }
  bytes[next] = rest
}

function putNegative(bytes: Buffer, at: number, value: number): void {
  const rest = BigInt.asUintN(64, BigInt(value))
  for (let group = 0; group < 10; group++) {
    const more = group < 9 ? 0x80 : 0
    bytes[at + group] = Number((rest >> BigInt(7 * group)) & 0x7fn) | more
  }
}

/** The length of the varint of an integer. */
export function varintLength(value: number): number {
  if (value < 0) return 10
  let length = 1
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++
  return length
}

/** Tag and length before a value of `length` bytes. */
export const lengthHeader = (number: number, length: number): Buffer =>
  Buffer.concat([varint(number * 8 + lengthType), varint(length)])

/** A whole field that holds bytes. */
export const bytesField = (number: number, value: Uint8Array): Buffer =>
  Buffer.concat([lengthHeader(number, value.byteLength), value])

export const stringField = (number: number, value: string): Buffer =>
  bytesField(number, Buffer.from(value))
