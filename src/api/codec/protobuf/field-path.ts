import type { GVK } from '../../kube/gvk.ts'
import { isPartial } from '../partial.ts'
import { PathError } from '../path-error.ts'
import {
  partialObjectMetadata,
  schemaOf,
  type Field,
  type MessageSchema,
} from '../schema/schema.ts'

/**
 * The fields of a kind; of one that is not known those of its metadata, which all kinds have alike.
 */
export const knownSchema = (gvk: GVK): MessageSchema => schemaOf(gvk) ?? partialObjectMetadata

/** The field `name` in JSON: the embedded messages it stands in, and the field itself. */
export interface FieldPath {
  readonly through: readonly Field[]
  readonly field: Field
}

/** Throws a `PathError` where the message has no such field. */
export function fieldNamed(schema: MessageSchema, name: string | number | undefined): FieldPath {
  const found = typeof name === 'string' ? search(schema, name) : undefined
  if (!found) throw new PathError(`no field ${name} is known in ${schema.name}`)
  return found
}

function search(schema: MessageSchema, name: string): FieldPath | undefined {
  const own = Object.hasOwn(schema.fields, name) ? schema.fields[name] : undefined
  if (own && !own.inline) return { through: [], field: own }
  for (const embedded of Object.values(schema.fields)) {
    if (!embedded.inline) continue
    const found = search(messageOf(embedded), name)
    if (found) return { through: [embedded, ...found.through], field: found.field }
  }
  return undefined
}

/** The message a field holds. A list in a message of its own cannot be gone through by path. */
export function messageOf(field: Field): MessageSchema {
  const schema = field.message?.()
  if (!schema || schema.wraps) throw new PathError('a path through what is no message')
  return schema
}

/** Whether a path leads to what an object of this kind, showing another's metadata, leaves out. */
export const isLeftOut = (gvk: GVK, name: string | number | undefined): boolean =>
  isPartial(gvk) && name !== 'metadata'
