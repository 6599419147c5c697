import type { GVK } from '../../kube/gvk.ts'
import { isPartial } from '../partial.ts'
import { PathError } from '../element.ts'
import {
  partialObjectMetadata,
  schemaOf,
  type Field,
  type MessageSchema,
} from '../schema/schema.ts'

/**
 * The schema of a kind. A kind without one has the schema of its metadata, which all kinds share.
 */
export const knownSchema = (gvk: GVK): MessageSchema => schemaOf(gvk) ?? partialObjectMetadata

/** A field by its JSON name: the embedded messages that contain it, and the field itself. */
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

/** The message type of a field. A path cannot pass through a list that is wrapped in a message. */
export function messageOf(field: Field): MessageSchema {
  const schema = field.message?.()
  if (!schema || schema.wraps) throw new PathError('a path through a field that is no message')
  return schema
}

/**
 * Whether an object of this kind, which shows only another object's metadata, leaves the path out.
 */
export const isLeftOut = (gvk: GVK, name: string | number | undefined): boolean =>
  isPartial(gvk) && name !== 'metadata'
