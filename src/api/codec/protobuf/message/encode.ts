import { isList, isObject, type Json, type JsonObject } from '../../../kube/json.ts'
import type { Field, MessageSchema } from '../../schema/schema.ts'
import { PathError } from '../../element.ts'
import { parseTime } from './time.ts'
import { BackwardWriter } from './writer.ts'

const lengthDelimited = 2

const wireType = ({ type }: Field): number =>
  type === 'bool' || type === 'int32' || type === 'int64' ? 0 : lengthDelimited

const descending = new WeakMap<MessageSchema, readonly (readonly [string, Field])[]>()

function fieldsFromLast(schema: MessageSchema): readonly (readonly [string, Field])[] {
  const known = descending.get(schema)
  if (known) return known
  const sorted = Object.entries(schema.fields).toSorted(([, a], [, b]) => b.number - a.number)
  descending.set(schema, sorted)
  return sorted
}

/** The bytes of a message as Go writes it. Throws PathErrors. */
export function messageBytes(schema: MessageSchema, object: JsonObject): Buffer {
  const out = new BackwardWriter()
  writeMessage(out, schema, object)
  return out.finish()
}

/**
 * Writes the content of a message as Go does, without members that the schema lacks. Throws
 * PathErrors.
 */
function writeMessage(out: BackwardWriter, schema: MessageSchema, object: JsonObject): void {
  for (const [name, field] of fieldsFromLast(schema)) {
    const value = field.inline ? object : object[name]
    try {
      writeField(out, field, value ?? undefined)
    } catch (error) {
      if (!(error instanceof PathError) || field.inline) throw error
      throw new PathError(`${name}: ${error.message}`, { cause: error })
    }
  }
}

/**
 * Writes a field, one occurrence per value and entry; `undefined` is an unset field. Throws
 * PathErrors.
 */
export function writeField(out: BackwardWriter, field: Field, value: Json | undefined): void {
  if (field.repeated) return writeList(out, field, value)
  if (field.map) return writeMap(out, field, value)
  if (value !== undefined || field.always) writeTagged(out, field, field.number, value)
}

function writeList(out: BackwardWriter, field: Field, value: Json | undefined): void {
  if (value === undefined) return
  if (!isList(value)) throw new PathError('not a list')
  for (const item of value.toReversed()) writeElement(out, field, item)
}

/** Writes one element of a list. Throws PathErrors. */
export const writeElement = (out: BackwardWriter, field: Field, value: Json): void =>
  writeTagged(out, field, field.number, value ?? undefined)

function writeMap(out: BackwardWriter, field: Field, value: Json | undefined): void {
  if (value === undefined) return
  if (!isObject(value)) throw new PathError('not an object')
  for (const key of Object.keys(value).toSorted(byBytes).toReversed()) {
    writeEntry(out, field, key, value[key])
  }
}

/** Writes one entry of a map. Throws PathErrors. */
export function writeEntry(
  out: BackwardWriter,
  field: Field,
  key: string,
  value: Json | undefined,
): void {
  const before = out.length
  writeTagged(out, field, 2, value ?? undefined)
  writeText(out, 1, key)
  out.delimit(before)
  out.tag(field.number, lengthDelimited)
}

/** Go sorts by UTF-8, which differs from UTF-16 where there are surrogates. */
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

function writeTagged(
  out: BackwardWriter,
  field: Field,
  number: number,
  value: Json | undefined,
): void {
  const before = out.length
  writeValue(out, field, value)
  const type = wireType(field)
  if (type === lengthDelimited) out.delimit(before)
  out.tag(number, type)
}

/** `undefined` is Go's zero value. */
function writeValue(out: BackwardWriter, field: Field, value: Json | undefined): void {
  switch (field.type) {
    case 'string':
      return out.string(text(value))
    case 'bytes':
      return out.bytes(base64(text(value)))
    case 'bool':
      return out.varint(boolean(value) ? 1 : 0)
    case 'int32':
      return out.varint(whole(value, 2 ** 31))
    case 'int64':
      return out.varint(whole(value, 2 ** 63))
    case 'time':
    case 'microtime':
      return writeTime(out, field.type === 'microtime', value)
    case 'quantity':
      return writeText(out, 1, typeof value === 'number' ? String(value) : text(value ?? '0'))
    case 'intOrString':
      return writeIntOrString(out, value ?? 0)
    case 'fieldsV1':
      return writeText(out, 1, JSON.stringify(value ?? null))
    case 'message':
      return writeNested(out, field, value)
  }
}

function writeNested(out: BackwardWriter, field: Field, value: Json | undefined): void {
  const schema = field.message?.()
  if (!schema) throw new PathError('a message without a schema')
  if (schema.wraps) return writeMessage(out, schema, { items: value ?? null })
  if (value !== undefined && !isObject(value)) throw new PathError('not an object')
  writeMessage(out, schema, value ?? {})
}

function writeText(out: BackwardWriter, number: number, value: string): void {
  const before = out.length
  out.string(value)
  out.delimit(before)
  out.tag(number, lengthDelimited)
}

function writeNumber(out: BackwardWriter, number: number, value: number): void {
  out.varint(value)
  out.tag(number, 0)
}

function writeTime(out: BackwardWriter, micro: boolean, value: Json | undefined): void {
  const moment = value === undefined ? undefined : parseTime(text(value))
  if (!moment) return
  // Written with the precision of JSON, so that both encodings are equal.
  writeNumber(out, 2, micro ? moment.nanos - (moment.nanos % 1000) : 0)
  writeNumber(out, 1, moment.seconds)
}

function writeIntOrString(out: BackwardWriter, value: Json): void {
  const isText = typeof value === 'string'
  writeText(out, 3, isText ? value : '')
  writeNumber(out, 2, isText ? 0 : whole(value, 2 ** 31))
  writeNumber(out, 1, isText ? 1 : 0)
}

function text(value: Json | undefined): string {
  if (value === undefined) return ''
  if (typeof value !== 'string') throw new PathError('not a string')
  return value
}

function boolean(value: Json | undefined): boolean {
  if (value === undefined) return false
  if (typeof value !== 'boolean') throw new PathError('not a boolean')
  return value
}

/** JSON numbers beyond 2^53 have lost digits before they get here. */
function whole(value: Json | undefined, limit: number): number {
  if (value === undefined) return 0
  if (typeof value !== 'number' || !Number.isInteger(value) || value < -limit || value >= limit)
    throw new PathError('not a whole number, or out of range')
  return value
}

function base64(value: string): Buffer {
  const bytes = Buffer.from(value, 'base64')
  if (bytes.toString('base64') !== value) throw new PathError('not base64')
  return bytes
}
