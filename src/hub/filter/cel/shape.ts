import { fieldNamed } from '../../../api/codec/protobuf/field-path.ts'
import type { Field, MessageSchema } from '../../../api/codec/schema/schema.ts'

/**
 * What is known of a value before there is one: its fields by the tables, or that they are nobody's
 * to know.
 */
export type Shape =
  | { readonly kind: 'any' }
  | { readonly kind: 'scalar' }
  | { readonly kind: 'message'; readonly schema: MessageSchema }
  | { readonly kind: 'list'; readonly of: Shape }
  | { readonly kind: 'map'; readonly of: Shape }

export const any: Shape = { kind: 'any' }
export const scalar: Shape = { kind: 'scalar' }

/** The shape of a message's field. Throws a `PathError` where the tables have none of that name. */
export function fieldShape(schema: MessageSchema, name: string): Shape {
  const { field } = fieldNamed(schema, name)
  const one = valueShape(field)
  if (field.map) return { kind: 'map', of: one }
  return field.repeated ? { kind: 'list', of: one } : one
}

/** Raw JSON within protobuf, which no path leads into. */
const raw: MessageSchema = { name: 'raw JSON', fields: {} }

function valueShape({ type, message }: Field): Shape {
  if (type === 'fieldsV1') return { kind: 'message', schema: raw }
  const schema = message?.()
  if (!schema) return scalar
  return schema.wraps ? { kind: 'list', of: scalar } : { kind: 'message', schema }
}

/**
 * Whether a value of this shape may have fields that are not known here: it cannot be compared, nor
 * counted, as a whole.
 */
export function hasMessage(shape: Shape): boolean {
  if (shape.kind === 'message') return true
  return (shape.kind === 'list' || shape.kind === 'map') && hasMessage(shape.of)
}

/**
 * The shape of what may be either; `undefined` where the fields of the one are not those of the
 * other.
 */
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
