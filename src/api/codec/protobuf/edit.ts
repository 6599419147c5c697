import type { GVK } from '../../kube/gvk.ts'
import { PathError, type Path } from '../element.ts'
import type { Edit, ElementChange } from '../change.ts'
import type { Field, MessageSchema } from '../schema/schema.ts'
import { ProtobufElement } from './cursor.ts'
import { emptyField, writeElement, writeEntry, writeField } from './edit-value.ts'
import { fieldNamed, knownSchema, messageOf } from './field-path.ts'
import {
  elementsIn,
  entriesOf,
  occurrenceOf,
  occurrences,
  whole,
  type Occurrence,
} from './values.ts'
import { bytesField, Fields, lengthType, stringField, varint } from './wire.ts'

/** The message with one edit applied. Fields outside of the edit's path keep their bytes. */
export function editProtobuf(gvk: GVK, bytes: Buffer, edit: Edit): Buffer {
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
    if (edit.op === 'each') return editEach(bytes, field, edit.change)
    return removed(bytes, field)
  }
  if (field.map) return editMap(bytes, field, rest, edit)
  if (field.repeated) return editList(bytes, field, rest, edit)
  return withMessage(bytes, field, (inner) => editMessage(messageOf(field), inner, rest, edit))
}

const nothing: Buffer = Buffer.alloc(0)

/**
 * The message with `field` replaced by the result of `change`. Several occurrences are one message,
 * as decoders merge them.
 */
export function withMessage(
  bytes: Buffer,
  field: Field,
  change: (inner: Buffer) => Buffer,
): Buffer {
  const pieces = occurrences([whole(bytes)], field)
  const inner = Buffer.concat(pieces.map(valueOf))
  const after = change(inner)
  if (after.equals(inner)) return bytes
  const message = pieces.length > 0 ? after : created(field, after)
  return replaced(bytes, field, bytesField(field.number, message))
}

/** A new message with the fields that Go writes even if they are empty. */
function created(field: Field, message: Buffer): Buffer {
  let complete = message
  for (const member of Object.values(messageOf(field).fields)) {
    const isMissing = occurrences([whole(message)], member).length === 0
    if (member.always === true && isMissing) {
      complete = replaced(complete, member, emptyField(member))
    }
  }
  return complete
}

/**
 * The message with `written` in place of all occurrences of a field: where the first was, else
 * where Go would write it.
 */
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

/**
 * The message without the field, or with an empty one if Go writes it so: then most lengths stay
 * the same.
 */
function removed(bytes: Buffer, field: Field): Buffer {
  const isThere = occurrences([whole(bytes)], field).length > 0
  if (!isThere) return bytes
  return replaced(bytes, field, field.always === true ? emptyField(field) : nothing)
}

function editMap(bytes: Buffer, field: Field, [key, ...rest]: Path, edit: Edit): Buffer {
  if (typeof key !== 'string' || key === '*') throw new PathError(`no key ${key} in a map`)
  const known = entriesOf([whole(bytes)], field).get(key)
  let entry = nothing
  if (rest.length > 0) {
    const inner = known ? valueOf(known) : nothing
    const changed = editMessage(messageOf(field), inner, rest, edit)
    if (changed.equals(inner)) return bytes
    entry = entryAround(field, key, known ? changed : created(field, changed))
  } else if (edit.op === 'set') entry = writeEntry(field, key, edit.value)
  else if (!known || edit.op === 'each') return bytes
  return withEntry(bytes, field, key, entry)
}

const entryAround = (field: Field, key: string, message: Buffer): Buffer =>
  bytesField(field.number, Buffer.concat([stringField(1, key), bytesField(2, message)]))

/**
 * The message with `entry` in place of all entries with this key: where the first was, else where
 * Go would write it. Go sorts keys.
 */
function withEntry(bytes: Buffer, { number }: Field, key: string, entry: Buffer): Buffer {
  const name = Buffer.from(key)
  const others: Buffer[] = []
  let same = -1
  let later = -1
  for (const fields = new Fields(bytes); fields.next();) {
    const order = fields.number === number ? Buffer.compare(keyOf(fields), name) : NaN
    if (order === 0) {
      if (same < 0) same = others.length
      continue
    }
    if (later < 0 && (order > 0 || fields.number > number)) later = others.length
    others.push(fields.whole)
  }
  const at = [same, later, others.length].find((index) => index >= 0)
  return Buffer.concat([...others.slice(0, at), entry, ...others.slice(at)])
}

function keyOf(entry: Fields): Buffer {
  let key: Buffer = nothing
  if (entry.type !== lengthType) return key
  for (const fields = new Fields(entry.bytes, entry.valueStart, entry.valueEnd); fields.next();) {
    if (fields.number === 1) key = fields.value
  }
  return key
}

/** The elements of a list as `change` decides; all other fields keep their position. */
function editEach(bytes: Buffer, field: Field, change: ElementChange): Buffer {
  if (!field.repeated) throw new PathError('each element of a value that is no list')
  const parts: Buffer[] = []
  let changed = false
  for (const fields = new Fields(bytes); fields.next();) {
    const made =
      fields.number === field.number ? changedOccurrence(fields, field, change) : undefined
    if (made) changed = true
    parts.push(made ?? fields.whole)
  }
  return changed ? Buffer.concat(parts) : bytes
}

/**
 * One occurrence of a list's field after `change`; a packed occurrence holds several numbers.
 * `undefined` if it is unchanged.
 */
function changedOccurrence(one: Fields, field: Field, change: ElementChange): Buffer | undefined {
  const elements = elementsIn(occurrenceOf(one), field)
  const made = elements.map((element) => changedElement(field, element, change))
  if (made.every((part) => part === undefined)) return undefined
  return Buffer.concat(
    made.map((part, index) => part ?? rewritten(field, elements[index] as Occurrence)),
  )
}

/** `undefined` if the element is unchanged. */
function changedElement(
  field: Field,
  element: Occurrence,
  change: ElementChange,
): Buffer | undefined {
  const wanted = change(new ProtobufElement(field, element))
  if (wanted === 'leave') return undefined
  if (wanted === 'remove') return nothing
  const before = rewritten(field, element)
  let made: Occurrence | undefined = element
  let after = before
  for (const edit of wanted) {
    if (!made) break
    after = editElement(field, made, edit.path, edit)
    const fields = new Fields(after)
    made = fields.next() ? elementsIn(occurrenceOf(fields), field)[0] : undefined
  }
  return after.equals(before) ? undefined : after
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
  } else if (
    written.every((made, at) => made.equals(rewritten(field, elements[at] as Occurrence)))
  ) {
    return bytes
  }
  return replaced(bytes, field, Buffer.concat(written))
}

function editElement(field: Field, element: Occurrence, rest: Path, edit: Edit): Buffer {
  if (rest.length > 0) {
    const inner = editMessage(messageOf(field), valueOf(element), rest, edit)
    return bytesField(field.number, inner)
  }
  if (edit.op === 'each') throw new PathError('each element of a value that is no list')
  return edit.op === 'set' ? writeElement(field, edit.value) : nothing
}

function newElement(field: Field, rest: Path, edit: Edit & { op: 'set' }): Buffer {
  if (rest.length === 0) return writeElement(field, edit.value)
  const inner = editMessage(messageOf(field), nothing, rest, edit)
  return inner.length === 0 ? nothing : bytesField(field.number, created(field, inner))
}

const valueOf = ({ bytes, start, end }: Occurrence): Buffer => bytes.subarray(start, end)

/** An unchanged value with its tag. */
function rewritten({ number }: Field, value: Occurrence): Buffer {
  if (value.type === lengthType) return bytesField(number, valueOf(value))

  return Buffer.concat([varint(number * 8 + value.type), valueOf(value)])
}
