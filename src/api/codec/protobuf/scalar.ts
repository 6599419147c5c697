import type { EditValue } from '../change.ts'
import { PathError, type Scalar } from '../element.ts'
import type { Field, MessageSchema } from '../schema/schema.ts'
import { fieldNamed, messageOf } from './field-path.ts'
import { textOf, type Occurrence } from './values.ts'
import { bytesField, Fields, stringField, varint, varintField } from './wire.ts'

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

/** A field with `value`, with its tag. Throws a `PathError` for a value that it cannot hold. */
export function writeValue(field: Field, value: EditValue): Buffer {
  const { number, type } = field
  switch (type) {
    case 'string':
      return stringField(number, asString(value))
    case 'bool':
      return varintField(number, asBoolean(value) ? 1 : 0)
    case 'int32':
    case 'int64':
      return varintField(number, asInteger(value))
    case 'bytes':
      return bytesField(number, Buffer.from(asString(value), 'base64'))
    case 'quantity':
      return bytesField(number, stringField(1, asString(value)))
    case 'intOrString':
      return bytesField(number, writeIntOrString(value))
    case 'time':
    case 'microtime':
      return bytesField(number, writeTime(asString(value)))
    case 'fieldsV1':
      return bytesField(number, stringField(1, JSON.stringify(value)))
    case 'message':
      return bytesField(number, writeMessage(messageOf(field), value))
  }
}

/** An empty field that is no pointer, as Go writes it. */
export function emptyValue({ number, type }: Field): Buffer {
  if (type === 'bool' || type === 'int32' || type === 'int64') return varintField(number, 0)
  return bytesField(number, Buffer.alloc(0))
}

/** The fields of `value` in the order of their numbers, as Go writes them. */
function writeMessage(schema: MessageSchema, value: EditValue): Buffer {
  if (!isMembers(value)) throw new PathError(`${schema.name} takes an object`)
  const parts = Object.entries(value).map(([name, member]) => {
    const { through, field } = fieldNamed(schema, name)
    if (through.length > 0) throw new PathError(`${name} is set by its own path`)
    return { number: field.number, bytes: writeField(field, member) }
  })
  parts.sort((a, b) => a.number - b.number)
  return Buffer.concat(parts.map(({ bytes }) => bytes))
}

/** All occurrences of a field: one per element of a list, one per entry of a map. */
export function writeField(field: Field, value: EditValue): Buffer {
  if (field.map) {
    if (!isMembers(value)) throw new PathError('a map takes an object')
    const keys = Object.keys(value).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    return Buffer.concat(keys.map((key) => writeEntry(field, key, value[key] as EditValue)))
  }
  if (!field.repeated) return writeValue(field, value)
  if (!isElements(value)) throw new PathError('a list takes a list')
  return Buffer.concat(value.map((element) => writeValue(field, element)))
}

export const writeEntry = (field: Field, key: string, value: EditValue): Buffer =>
  entryAround(field, key, writeValue({ ...field, number: 2 }, value))

/** A map's entry; `value` is a complete field with the number 2. */
export const entryAround = (field: Field, key: string, value: Buffer): Buffer =>
  bytesField(field.number, Buffer.concat([stringField(1, key), value]))

const isElements = (value: EditValue): value is readonly EditValue[] => Array.isArray(value)

const isMembers = (value: EditValue): value is { readonly [key: string]: EditValue } =>
  typeof value === 'object' && !isElements(value)

function asString(value: EditValue): string {
  if (typeof value !== 'string') throw new PathError('text is wanted')
  return value
}

function asBoolean(value: EditValue): boolean {
  if (typeof value !== 'boolean') throw new PathError('true or false is wanted')
  return value
}

function asInteger(value: EditValue): number {
  if (!Number.isSafeInteger(value)) throw new PathError('a whole number is wanted')
  return value as number
}

const writeIntOrString = (value: EditValue): Buffer =>
  typeof value === 'string'
    ? Buffer.concat([varintField(1, 1), varintField(2, 0), stringField(3, value)])
    : Buffer.concat([varintField(1, 0), varintField(2, asInteger(value)), stringField(3, '')])

const timeForm = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/

function writeTime(text: string): Buffer {
  const [, whole, fraction = '', zone] = timeForm.exec(text) ?? []
  const seconds = Date.parse(`${whole}${zone}`) / 1000
  if (!Number.isInteger(seconds)) throw new PathError('a time as in RFC 3339 is wanted')
  const nanos = Number(fraction.padEnd(9, '0'))
  return Buffer.concat([varintField(1, seconds), varintField(2, nanos)])
}
