import type { EditValue } from '../change.ts'
import type { Field } from '../schema/schema.ts'
import { fieldNamed, messageOf } from './field-path.ts'
import * as encode from './message/encode.ts'
import { BackwardWriter } from './message/writer.ts'

// All throw a `PathError` for a value that the field cannot hold.

/** All occurrences of a field: one per element of a list, one per entry of a map. */
export const writeField = (field: Field, value: EditValue): Buffer =>
  written(field, value, (out) => encode.writeField(out, field, value))

/** One element of a list, with its tag. */
export const writeElement = (field: Field, value: EditValue): Buffer =>
  written(field, value, (out) => encode.writeElement(out, field, value))

/** One entry of a map, with its tag. */
export const writeEntry = (field: Field, key: string, value: EditValue): Buffer =>
  written(field, { [key]: value }, (out) => encode.writeEntry(out, field, key, value))

/** An empty field that is no pointer, as Go writes it. */
export function emptyField(field: Field): Buffer {
  const out = new BackwardWriter()
  encode.writeField(out, field, undefined)
  return out.finish()
}

function written(field: Field, value: EditValue, write: (out: BackwardWriter) => void): Buffer {
  checkMembers(field, value)
  const out = new BackwardWriter()
  write(out)
  return out.finish()
}

/** The writer leaves out what the schema lacks; in an edit that is a mistake, at any depth. */
function checkMembers(field: Field, value: EditValue): void {
  if (field.type !== 'message' || typeof value !== 'object') return
  if (isElements(value)) {
    for (const element of value) checkMembers(field, element)
  } else if (field.map) {
    const { map: _, ...values } = field
    for (const member of Object.values(value)) checkMembers(values, member)
  } else {
    const schema = messageOf(field)
    for (const [name, member] of Object.entries(value)) {
      checkMembers(fieldNamed(schema, name).field, member)
    }
  }
}

const isElements = (value: EditValue): value is readonly EditValue[] => Array.isArray(value)
