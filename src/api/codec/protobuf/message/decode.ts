import type { Json, JsonObject } from '../../../kube/json.ts'
import { MalformedBody } from '../../malformed-body.ts'
import type { Field, MessageSchema } from '../../schema/schema.ts'
import { isScalar, readSingle, readValue } from '../scalar.ts'
import {
  fieldsIn,
  isPacked,
  mostValues,
  occurrenceOf,
  readEntry,
  tooMany,
  unpacked,
  type Occurrence,
} from '../values.ts'

/** Reads messages of one body, whose values are counted together. */
export class MessageReader {
  #left = mostValues

  /**
   * The message as the API server writes it in JSON, without unknown fields. Pieces of it are
   * merged. Throws `MalformedBody`.
   */
  message(schema: MessageSchema, pieces: readonly Occurrence[]): JsonObject {
    const found = this.#found(pieces)
    return Object.fromEntries(
      Object.entries(schema.fields).flatMap(([name, field]) => {
        try {
          return this.#members(name, field, found.get(field.number) ?? [])
        } catch (cause) {
          if (!(cause instanceof MalformedBody) || field.inline) throw cause
          throw new MalformedBody(`${name}: ${cause.message}`, { cause })
        }
      }),
    )
  }

  /** The JSON value of a field with these occurrences; `undefined` if JSON omits it. */
  field(field: Field, values: readonly Occurrence[]): Json | undefined {
    if (field.repeated) return this.#list(field, values)
    return field.map ? this.#map(field, values) : this.#single(field, values)
  }

  #found(pieces: readonly Occurrence[]): Map<number, Occurrence[]> {
    const found = new Map<number, Occurrence[]>()
    for (const piece of pieces) {
      for (const fields = fieldsIn(piece); fields.next();) {
        this.#count()
        const values = found.get(fields.number)
        if (values) values.push(occurrenceOf(fields))
        else found.set(fields.number, [occurrenceOf(fields)])
      }
    }
    return found
  }

  #count(): void {
    if (--this.#left < 0) throw tooMany()
  }

  /**
   * The members that a field adds to the JSON of its message: none, one, or the fields of an
   * embedded struct.
   */
  #members(name: string, field: Field, values: readonly Occurrence[]): (readonly [string, Json])[] {
    if (field.inline) return Object.entries(this.message(schemaOfField(field), values))
    const value = this.field(field, values)
    return value === undefined ? [] : [[name, value]]
  }

  #list(field: Field, values: readonly Occurrence[]): Json | undefined {
    if (values.length === 0) return field.shown ? null : undefined
    const list: Json[] = []
    for (const value of values) {
      if (!isPacked(field, value)) list.push(this.#value(field, value))
      else {
        for (const number of unpacked(value)) {
          this.#count()
          list.push(this.#value(field, number))
        }
      }
    }
    return list
  }

  #map(field: Field, values: readonly Occurrence[]): Json | undefined {
    if (values.length === 0) return field.shown ? null : undefined
    return Object.fromEntries(
      values.map((entry) => {
        const [key, value] = readEntry(entry, field)
        return [key, this.#value(field, value)] as const
      }),
    )
  }

  #single(field: Field, values: readonly Occurrence[]): Json | undefined {
    if (isScalar(field)) return readSingle(field, values)
    if (values.length > 0) return this.#nested(field, values)
    if (!field.shown) return undefined
    return field.always ? this.#nested(field, values) : null
  }

  #value(field: Field, value: Occurrence): Json {
    return isScalar(field) ? readValue(field, value) : this.#nested(field, [value])
  }

  #nested(field: Field, pieces: readonly Occurrence[]): Json {
    const schema = schemaOfField(field)
    const value = this.message(schema, pieces)
    return schema.wraps ? (value['items'] ?? []) : value
  }
}

function schemaOfField(field: Field): MessageSchema {
  const schema = field.message?.()
  if (!schema) throw new Error('a message without a schema')
  return schema
}
