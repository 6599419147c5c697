import type { Scalar } from '../element.ts'
import type { Field } from '../schema/schema.ts'
import { textOf, type Occurrence } from './values.ts'
import { Fields, varint } from './wire.ts'

/**
 * The JSON value of a field with one value, of which the last occurrence counts; `undefined` if
 * JSON omits it or has no scalar.
 */
export function readScalar(field: Field, pieces: readonly Occurrence[]): Scalar | undefined {
  const last = pieces.at(-1)
  const value = last ? decode(field, pieces, last) : emptyOf(field)
  // Go writes these to protobuf even if they are empty, and omits them from JSON.
  const leftOut = field.always === true && field.shown !== true
  return leftOut && (value === '' || value === 0 || value === false) ? undefined : value
}

function decode(field: Field, pieces: readonly Occurrence[], last: Occurrence): Scalar | undefined {
  switch (field.type) {
    case 'string':
      return textOf(last)
    case 'bool':
      return numberIn(last) !== 0
    case 'int32':
    case 'int64':
      return numberIn(last)
    case 'bytes':
      return last.bytes.toString('base64', last.start, last.end)
    case 'quantity':
      return stringIn(pieces, 1)
    case 'intOrString':
      return varintIn(pieces, 1) === 1 ? stringIn(pieces, 3) : varintIn(pieces, 2)
    case 'time':
    case 'microtime':
      return readTime(pieces, field.type === 'microtime')
    case 'message':
    case 'fieldsV1':
      return undefined
  }
}

/** The value that JSON shows for a missing field. */
function emptyOf({ type, shown }: Field): Scalar | undefined {
  if (shown !== true) return undefined
  if (type === 'string') return ''
  if (type === 'bool') return false
  return type === 'int32' || type === 'int64' || type === 'intOrString'
    ? 0
    : type === 'quantity'
      ? '0'
      : undefined
}

function numberIn({ bytes, start, end }: Occurrence): number {
  const fields = new Fields(Buffer.concat([varint(8), bytes.subarray(start, end)]))
  return fields.next() ? fields.varint : 0
}

function varintIn(pieces: readonly Occurrence[], number: number): number {
  let value = 0
  eachField(pieces, (fields) => {
    if (fields.number === number) value = fields.varint
  })
  return value
}

function stringIn(pieces: readonly Occurrence[], number: number): string {
  let value = ''
  eachField(pieces, (fields) => {
    if (fields.number === number) value = fields.string
  })
  return value
}

function eachField(pieces: readonly Occurrence[], take: (fields: Fields) => void): void {
  for (const { bytes, start, end } of pieces) {
    for (const fields = new Fields(bytes, start, end); fields.next();) take(fields)
  }
}

/** Seconds since 1970 and nanoseconds, as RFC 3339; Go's zero time is an empty message. */
function readTime(pieces: readonly Occurrence[], micro: boolean): string | undefined {
  if (pieces.every(({ start, end }) => start === end)) return undefined
  const date = new Date(varintIn(pieces, 1) * 1000)
  if (Number.isNaN(date.getTime())) return undefined
  const whole = date.toISOString().slice(0, 19)
  if (!micro) return `${whole}Z`
  const micros = Math.floor(varintIn(pieces, 2) / 1000)
  return `${whole}.${String(micros).padStart(6, '0')}Z`
}
