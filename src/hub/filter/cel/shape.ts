import { fieldNamed } from '../../../api/codec/protobuf/field-path.ts'
import type { Field, MessageSchema } from '../../../api/codec/schema/schema.ts'

/** The shape of a value: its fields by the schema, or any fields. */
export type Shape =
  | { readonly kind: 'any' }
  | { readonly kind: 'scalar' }
  | { readonly kind: 'message'; readonly schema: MessageSchema }
  | { readonly kind: 'list'; readonly of: Shape }
  | { readonly kind: 'map'; readonly of: Shape }

export const any: Shape = { kind: 'any' }
export const scalar: Shape = { kind: 'scalar' }

/**
 * The shape of a message's field. Throws a `PathError` where the schema has no field of that name.
 */
export function fieldShape(schema: MessageSchema, name: string): Shape {
  const { field } = fieldNamed(schema, name)
  const one = valueShape(field)
  if (field.map) return { kind: 'map', of: one }
  return field.repeated ? { kind: 'list', of: one } : one
}

/** Raw JSON in protobuf, which no path enters. */
const raw: MessageSchema = { name: 'raw JSON', fields: {} }

function valueShape({ type, message }: Field): Shape {
  if (type === 'fieldsV1') return { kind: 'message', schema: raw }
  const schema = message?.()
  if (!schema) return scalar
  return schema.wraps ? { kind: 'list', of: scalar } : { kind: 'message', schema }
}

/**
 * Whether a value of this shape may have unknown fields, so that it cannot be compared or counted
 * as a whole.
 */
export function hasMessage(shape: Shape): boolean {
  if (shape.kind === 'message') return true
  return (shape.kind === 'list' || shape.kind === 'map') && hasMessage(shape.of)
}

/** The shape of a value that has one of two; `undefined` where their fields differ. */
export function commonShape(one: Shape, other: Shape): Shape | undefined {
  if (isSame(one, other)) return one
  return hasMessage(one) || hasMessage(other) ? undefined : any
}

function isSame(one: Shape, other: Shape): boolean {
  if (one.kind === 'message') return other.kind === 'message' && one.schema === other.schema
  if (one.kind === 'list' || one.kind === 'map')
    return other.kind === one.kind && isSame(one.of, other.of)
  return one.kind === other.kind
}
