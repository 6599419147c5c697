import type { Json, JsonObject } from '../../../kube/json.ts'
import type { Field, MessageSchema } from '../../schema/schema.ts'
import { ProtobufError } from './error.ts'
import { readFields, readPacked, type WireField } from './reader.ts'
import { formatTime } from './time.ts'

type WireValue = WireField['value']

/**
 * The limit of values in one body: an empty value takes two bytes there and an object in memory.
 */
const mostValues = 2_000_000

/** Reads messages of one body, whose values are counted together. */
export class MessageReader {
  #left = mostValues

  /**
   * The message as the API server writes it in JSON, without unknown fields. Throws ProtobufErrors.
   */
  message(schema: MessageSchema, bytes: Buffer): JsonObject {
    const found = this.#found(bytes)
    return Object.fromEntries(
      Object.entries(schema.fields).flatMap(([name, field]) => {
        try {
          return this.#members(name, field, found.get(field.number) ?? [])
        } catch (error) {
          if (!(error instanceof ProtobufError) || field.inline) throw error
          throw new ProtobufError(`${name}: ${error.message}`, { cause: error })
        }
      }),
    )
  }

  /**
   * The JSON value of a field with these wire values, in their order; `undefined` if JSON omits it.
   */
  field(field: Field, values: readonly WireValue[]): Json | undefined {
    if (field.repeated) return this.#list(field, values)
    return field.map ? this.#map(field, values) : this.#single(field, values)
  }

  #found(bytes: Buffer): Map<number, WireValue[]> {
    const found = new Map<number, WireValue[]>()
    for (const { number, value } of readFields(bytes)) {
      if (--this.#left < 0) throw new ProtobufError(`more than ${mostValues} values`)
      const values = found.get(number)
      if (values) values.push(value)
      else found.set(number, [value])
    }
    return found
  }

  /**
   * The members that a field adds to the JSON of its message: none, one, or the fields of an
   * embedded struct.
   */
  #members(name: string, field: Field, values: readonly WireValue[]): (readonly [string, Json])[] {
    if (field.inline) return Object.entries(this.message(schemaOfField(field), merged(values)))
    const value = this.field(field, values)
    return value === undefined ? [] : [[name, value]]
  }

  #list(field: Field, values: readonly WireValue[]): Json | undefined {
    if (values.length === 0) return field.shown ? null : undefined
    const packable = field.type === 'bool' || field.type === 'int32' || field.type === 'int64'
    return values
      .flatMap((value): readonly WireValue[] =>
        packable && typeof value !== 'number' ? [...readPacked(value)] : [value],
      )
      .map((value) => this.#value(field, value))
  }

  #map(field: Field, values: readonly WireValue[]): Json | undefined {
    if (values.length === 0) return field.shown ? null : undefined
    return Object.fromEntries(values.map((entry) => this.#entry(field, bytesOf(entry))))
  }

  #entry(field: Field, entry: Buffer): readonly [string, Json] {
    let key = ''
    let value: WireValue | undefined
    for (const found of readFields(entry)) {
      if (found.number === 1) key = textOf(found.value)
      if (found.number === 2) value = found.value
    }
    return [key, this.#value(field, value ?? zero(field))]
  }

  #single(field: Field, values: readonly WireValue[]): Json | undefined {
    const [first] = values
    if (first === undefined) {
      if (!field.always) return field.shown ? null : undefined
      return field.shown ? this.#value(field, zero(field)) : undefined
    }
    const value = this.#value(
      field,
      field.type === 'message' ? merged(values) : (values.at(-1) ?? first),
    )
    return field.shown || !isEmpty(field, value) ? value : undefined
  }

  #value(field: Field, value: WireValue): Json {
    switch (field.type) {
      case 'string':
        return textOf(value)
      case 'bytes':
        return bytesOf(value).toString('base64')
      case 'bool':
        return numberOf(value) !== 0
      case 'int32':
        return numberOf(value) | 0
      case 'int64':
        return numberOf(value)
      case 'time':
      case 'microtime':
        return timeOf(bytesOf(value), field.type === 'microtime')
      case 'quantity':
        return textOf(lastOf(bytesOf(value), 1) ?? Buffer.from('0'))
      case 'intOrString':
        return intOrStringOf(bytesOf(value))
      case 'fieldsV1':
        return rawJsonOf(bytesOf(value))
      case 'message':
        return this.#nested(schemaOfField(field), bytesOf(value))
    }
  }

  #nested(schema: MessageSchema, bytes: Buffer): Json {
    const value = this.message(schema, bytes)
    return schema.wraps ? (value['items'] ?? []) : value
  }
}

function schemaOfField(field: Field): MessageSchema {
  const schema = field.message?.()
  if (!schema) throw new ProtobufError('a message without a schema')
  return schema
}

/** Occurrences of one message are one message cut in pieces. */
const merged = (values: readonly WireValue[]): Buffer => Buffer.concat(values.map(bytesOf))

/** The wire value of a missing field. */
const zero = (field: Field): WireValue => {
  if (field.type === 'bool' || field.type === 'int32' || field.type === 'int64') return 0
  return Buffer.alloc(0)
}

/** `omitempty` for fields that are no pointers: JSON shows every pointer that is set. */
const isEmpty = (field: Field, value: Json): boolean =>
  field.always || field.type === 'bytes'
    ? value === null || value === '' || value === 0 || value === false
    : false

function numberOf(value: WireValue): number {
  if (typeof value !== 'number') throw new ProtobufError('bytes where a number belongs')
  return value
}

function bytesOf(value: WireValue): Buffer {
  if (typeof value === 'number') throw new ProtobufError('a number where bytes belong')
  return value
}

const textOf = (value: WireValue): string => bytesOf(value).toString('utf8')

function lastOf(message: Buffer, number: number): WireValue | undefined {
  let last: WireValue | undefined
  for (const field of readFields(message)) if (field.number === number) last = field.value
  return last
}

function timeOf(message: Buffer, micro: boolean): string | null {
  if (message.length === 0) return null
  const seconds = numberOf(lastOf(message, 1) ?? 0)
  const nanos = numberOf(lastOf(message, 2) ?? 0)
  if (nanos < 0 || nanos > 999_999_999) throw new ProtobufError('a time out of range')
  return formatTime({ seconds, nanos }, micro)
}

const intOrStringOf = (message: Buffer): string | number =>
  numberOf(lastOf(message, 1) ?? 0) === 1
    ? textOf(lastOf(message, 3) ?? Buffer.alloc(0))
    : numberOf(lastOf(message, 2) ?? 0) | 0

function rawJsonOf(message: Buffer): Json {
  const raw = textOf(lastOf(message, 1) ?? Buffer.alloc(0))
  if (raw === '') return null
  try {
    return JSON.parse(raw) as Json
  } catch (error) {
    throw new ProtobufError('not JSON', { cause: error })
  }
}
