import type { GVK } from '../../kube/gvk.ts'
import type { Path } from '../cursor.ts'
import type { Edit } from '../edit.ts'
import { PathError } from '../path-error.ts'
import type { Field, MessageSchema } from '../schema/schema.ts'
import { fieldNamed, isLeftOut, knownSchema, messageOf } from './field-path.ts'
import { emptyValue, entryAround, writeEntry, writeField, writeValue } from './scalar.ts'
import { entriesOf, occurrences, type Occurrence } from './values.ts'
import { bytesField, Fields, lengthType, varint } from './wire.ts'

/** The message with one edit made. What the edit does not lead through keeps its bytes. */
export function editProtobuf(gvk: GVK, bytes: Buffer, edit: Edit): Buffer {
  if (isLeftOut(gvk, edit.path[0])) return bytes
  return editMessage(knownSchema(gvk), bytes, edit.path, edit)
}

function editMessage(schema: MessageSchema, bytes: Buffer, path: Path, edit: Edit): Buffer {
  const [name, ...rest] = path
  const { through, field } = fieldNamed(schema, name)
  const [embedded] = through
  if (embedded) {
    return withMessage(bytes, embedded, (inner) =>
      editMessage(messageOf(embedded), inner, path, edit),
    )
  }
  if (rest.length === 0) {
    if (edit.op === 'set') return replaced(bytes, field, writeField(field, edit.value))
    return removed(bytes, field)
  }
  if (field.map) return editMap(bytes, field, rest, edit)
  if (field.repeated) return editList(bytes, field, rest, edit)
  return withMessage(bytes, field, (inner) => editMessage(messageOf(field), inner, rest, edit))
}

const nothing: Buffer = Buffer.alloc(0)

/** A message in which `field` holds what `change` makes of it. Occurrences are one message, as for decoders, which merge them. */
export function withMessage(
  bytes: Buffer,
  field: Field,
  change: (inner: Buffer) => Buffer,
): Buffer {
  const pieces = occurrences([whole(bytes)], field)
  const inner = Buffer.concat(pieces.map(valueOf))
  const after = change(inner)
  if (after.equals(inner)) return bytes
  return replaced(bytes, field, bytesField(field.number, after))
}

/** `written` in place of all occurrences of a field: where the first was, else where Go would write it. */
export function replaced(bytes: Buffer, { number }: Field, written: Buffer): Buffer {
  const before: Buffer[] = []
  const after: Buffer[] = []
  let passed = false
  for (const fields = new Fields(bytes); fields.next();) {
    if (fields.number >= number) passed = true
    if (fields.number === number) continue
    ;(passed ? after : before).push(fields.whole)
  }
  return Buffer.concat([...before, written, ...after])
}

/** Without the field, or with an empty one where Go writes it even so: then there are mostly no lengths to change. */
function removed(bytes: Buffer, field: Field): Buffer {
  const isThere = occurrences([whole(bytes)], field).length > 0
  if (!isThere) return bytes
  return replaced(bytes, field, field.always === true ? emptyValue(field) : nothing)
}

function editMap(bytes: Buffer, field: Field, [key, ...rest]: Path, edit: Edit): Buffer {
  if (typeof key !== 'string' || key === '*') throw new PathError(`no key ${key} in a map`)
  const entries = entriesOf([whole(bytes)], field)
  const known = entries.get(key)
  const value = { ...field, number: 2 }
  let entry = nothing
  if (rest.length > 0) {
    const inner = known ? valueOf(known) : nothing
    const changed = editMessage(messageOf(field), inner, rest, edit)
    if (changed.equals(inner)) return bytes
    entry = entryAround(field, key, bytesField(2, changed))
  } else if (edit.op === 'set') entry = writeEntry(field, key, edit.value)
  else if (!known) return bytes
  const others = [...entries]
    .filter(([other]) => other !== key)
    .map(([other, held]) => [other, entryAround(field, other, rewritten(value, held))] as const)
  const all = entry.length === 0 ? others : [...others, [key, entry] as const]
  // Go writes the keys in order.
  all.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return replaced(bytes, field, Buffer.concat(all.map(([, written]) => written)))
}

function editList(bytes: Buffer, field: Field, [step, ...rest]: Path, edit: Edit): Buffer {
  const elements = occurrences([whole(bytes)], field)
  if (step !== '*' && typeof step !== 'number') throw new PathError(`no list has ${step}`)
  const isMeant = (index: number): boolean => step === '*' || step === index
  const written = elements.map((element, index) =>
    isMeant(index) ? editElement(field, element, rest, edit) : rewritten(field, element),
  )
  if (typeof step === 'number' && step >= elements.length && edit.op === 'set') {
    if (step > elements.length) {
      throw new PathError(`no element ${step} in a list of ${elements.length}`)
    }
    written.push(newElement(field, rest, edit))
  }
  return replaced(bytes, field, Buffer.concat(written))
}

function editElement(field: Field, element: Occurrence, rest: Path, edit: Edit): Buffer {
  if (rest.length > 0) {
    const inner = editMessage(messageOf(field), valueOf(element), rest, edit)
    return bytesField(field.number, inner)
  }
  return edit.op === 'set' ? writeValue(field, edit.value) : nothing
}

function newElement(field: Field, rest: Path, edit: Edit & { op: 'set' }): Buffer {
  if (rest.length === 0) return writeValue(field, edit.value)
  const inner = editMessage(messageOf(field), nothing, rest, edit)
  return inner.length === 0 ? nothing : bytesField(field.number, inner)
}

const whole = (bytes: Buffer): Occurrence => ({
  bytes,
  type: lengthType,
  start: 0,
  end: bytes.length,
})

const valueOf = ({ bytes, start, end }: Occurrence): Buffer => bytes.subarray(start, end)

/** A value that is left as it was, with its tag. */
function rewritten({ number }: Field, value: Occurrence): Buffer {
  if (value.type === lengthType) return bytesField(number, valueOf(value))

  return Buffer.concat([varint(number * 8 + value.type), valueOf(value)])
}
