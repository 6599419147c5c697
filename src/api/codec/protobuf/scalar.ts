import type { Json } from '../../kube/json.ts'
import type { Scalar } from '../element.ts'
import { MalformedBody, parsedJson } from '../malformed-body.ts'
import type { Field, FieldType } from '../schema/schema.ts'
import { formatTime } from './message/time.ts'
import { fieldsIn, missing, numberOf, occurrenceOf, textOf, type Occurrence } from './values.ts'

/** A field whose values are no messages with fields of their own. */
type ScalarField = Field & { readonly type: Exclude<FieldType, 'message'> }

export const isScalar = (field: Field): field is ScalarField => field.type !== 'message'

/**
 * The JSON value of a field with one value, of which the last occurrence counts; `undefined` if
 * JSON omits it or has no scalar. Throws `MalformedBody`.
 */
export function readScalar(field: Field, pieces: readonly Occurrence[]): Scalar | undefined {
  if (!isScalar(field) || field.type === 'fieldsV1') return undefined
  const value = readSingle(field, pieces)
  return typeof value === 'object' ? undefined : value
}

/** The same with null, and with the JSON that a fieldsV1 holds. */
export function readSingle(field: ScalarField, pieces: readonly Occurrence[]): Json | undefined {
  const last = pieces.at(-1)
  if (last === undefined) return field.shown ? emptyOf(field) : undefined
  const value = readValue(field, last)
  return field.shown || !isOmitted(field, value) ? value : undefined
}

/** The value that JSON shows for a missing field. */
const emptyOf = (field: ScalarField): Json =>
  field.always ? readValue(field, missing(field)) : null

/** `omitempty` for fields that are no pointers: JSON shows every pointer that is set. */
const isOmitted = (field: ScalarField, value: Json): boolean =>
  field.always || field.type === 'bytes'
    ? value === null || value === '' || value === 0 || value === false
    : false

/** One occurrence as JSON. Throws `MalformedBody`. */
export function readValue({ type }: ScalarField, piece: Occurrence): Json {
  switch (type) {
    case 'string':
      return textOf(piece)
    case 'bytes':
      return textOf(piece, 'base64')
    case 'bool':
      return numberOf(piece) !== 0
    case 'int32':
      return numberOf(piece) | 0
    case 'int64':
      return numberOf(piece)
    case 'time':
    case 'microtime':
      return readTime(piece, type === 'microtime')
    case 'quantity':
      return textIn(piece, 1) ?? '0'
    case 'intOrString':
      return numberIn(piece, 1) === 1 ? (textIn(piece, 3) ?? '') : numberIn(piece, 2) | 0
    case 'fieldsV1':
      return parsedJson(textIn(piece, 1) || 'null')
  }
}

/** Seconds since 1970 and nanoseconds; Go's zero time is an empty message. */
function readTime(piece: Occurrence, micro: boolean): string | null {
  if (piece.start === piece.end) return null
  const seconds = numberIn(piece, 1)
  const nanos = numberIn(piece, 2)
  if (nanos < 0 || nanos > 999_999_999) throw new MalformedBody('a time out of range')
  return formatTime({ seconds, nanos }, micro)
}

function numberIn(piece: Occurrence, number: number): number {
  const last = lastIn(piece, number)
  return last ? numberOf(last) : 0
}

function textIn(piece: Occurrence, number: number): string | undefined {
  const last = lastIn(piece, number)
  return last && textOf(last)
}

function lastIn(piece: Occurrence, number: number): Occurrence | undefined {
  let last: Occurrence | undefined
  for (const fields = fieldsIn(piece); fields.next();) {
    if (fields.number === number) last = occurrenceOf(fields)
  }
  return last
}
