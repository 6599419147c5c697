import { PathError, type Path } from '../element.ts'
import type { Edit, EditValue, ElementChange } from '../change.ts'
import { JsonElement } from './cursor.ts'
import { elementsOf, membersOf, skipSpace, valueEnd, type Span } from './members.ts'
import { goJson } from './write.ts'

/** A range of bytes and its replacement. */
interface Splice {
  readonly start: number
  readonly end: number
  readonly by: string | Buffer
}

/** The bytes with one edit applied; they are copied once. */
export const editJson = (bytes: Buffer, edit: Edit): Buffer =>
  spliced(bytes, splicesAt(bytes, 0, edit.path, edit))

/** `splices` do not overlap and are in order. */
function spliced(bytes: Buffer, splices: readonly Splice[]): Buffer {
  if (splices.length === 0) return bytes
  const parts: Buffer[] = []
  let from = 0
  for (const { start, end, by } of splices) {
    parts.push(bytes.subarray(from, start), typeof by === 'string' ? Buffer.from(by) : by)
    from = end
  }
  return Buffer.concat([...parts, bytes.subarray(from)])
}

function splicesAt(bytes: Buffer, at: number, path: Path, edit: Edit): Splice[] {
  const [step, ...rest] = path
  if (step === undefined) {
    if (edit.op === 'each') return inEach(bytes, at, edit.change)
    return edit.op === 'set'
      ? [{ start: at, end: valueEnd(bytes, at), by: goJson(edit.value) }]
      : []
  }
  // Go writes null for nil lists and objects.
  if (bytes[at] === 0x6e) return madeAt(at, valueEnd(bytes, at), path, edit)
  return typeof step === 'string' && step !== '*'
    ? inObject(bytes, at, step, rest, edit)
    : inList(bytes, at, step, rest, edit)
}

function madeAt(start: number, end: number, path: Path, edit: Edit): Splice[] {
  if (edit.op !== 'set' || path.includes('*')) return []
  return [{ start, end, by: goJson(nested(path, edit.value)) }]
}

function inObject(bytes: Buffer, at: number, key: string, rest: Path, edit: Edit): Splice[] {
  if (bytes[at] !== 0x7b) {
    if (edit.op === 'each') return []
    throw new PathError(`no object has ${key}`)
  }
  const named = membersOf(bytes, at, key)
  const last = named.at(-1)
  if (edit.op === 'remove' && rest.length === 0) {
    // All members with this key: if only the last were removed, an earlier one would count.
    return last ? [without(bytes, at, membersOf(bytes, at), named)] : []
  }
  if (last) return splicesAt(bytes, last.valueStart, rest, edit)
  if (edit.op !== 'set' || rest.includes('*')) return []
  const member = `${goJson(key)}:${goJson(nested(rest, edit.value))}`
  const end = valueEnd(bytes, at) - 1
  const empty = bytes[skipSpace(bytes, at + 1)] === 0x7d
  return [{ start: end, end, by: empty ? member : `,${member}` }]
}

function inList(
  bytes: Buffer,
  at: number,
  step: string | number,
  rest: Path,
  edit: Edit,
): Splice[] {
  if (bytes[at] !== 0x5b) {
    if (edit.op === 'each') return []
    throw new PathError(`no list has ${step}`)
  }
  const elements = elementsOf(bytes, at)
  const meant = typeof step === 'number' ? elements.slice(step, step + 1) : elements
  if (meant.length === 0) return appended(bytes, at, elements.length, step, rest, edit)
  if (edit.op === 'remove' && rest.length === 0) return [without(bytes, at, elements, meant)]
  return meant.flatMap(({ valueStart }) => splicesAt(bytes, valueStart, rest, edit))
}

function appended(
  bytes: Buffer,
  at: number,
  count: number,
  step: string | number,
  rest: Path,
  edit: Edit,
): Splice[] {
  if (edit.op !== 'set' || step === '*' || rest.includes('*')) return []
  if (step !== count) throw new PathError(`no element ${step} in a list of ${count}`)
  const element = goJson(nested(rest, edit.value))
  const end = valueEnd(bytes, at) - 1
  return [{ start: end, end, by: count === 0 ? element : `,${element}` }]
}

/** The object or list at `at` without the removed members or elements. */
function without(
  bytes: Buffer,
  at: number,
  all: readonly Span[],
  removed: readonly Span[],
): Splice {
  const gone = new Set(removed.map(({ start }) => start))
  const kept = all.filter(({ start }) => !gone.has(start))
  return inPlaceOf(
    bytes,
    at,
    all,
    kept.map(({ start, end }) => bytes.subarray(start, end)),
  )
}

/** The object or list at `at`, of which `all` are the members or elements, with these instead. */
function inPlaceOf(
  bytes: Buffer,
  at: number,
  all: readonly Span[],
  parts: readonly Buffer[],
): Splice {
  const by = Buffer.concat(parts.flatMap((part, index) => (index === 0 ? [part] : [comma, part])))
  return { start: at + 1, end: skipSpace(bytes, all.at(-1)?.end ?? at + 1), by }
}

const comma = Buffer.from(',')

/** The elements of the list at `at` as `change` decides; a value that is no list has none. */
function inEach(bytes: Buffer, at: number, change: ElementChange): Splice[] {
  if (bytes[at] !== 0x5b) return []
  const kept: Buffer[] = []
  const changed: Splice[] = []
  const elements = elementsOf(bytes, at)
  for (const { start, end } of elements) {
    const wanted = change(new JsonElement(bytes, start))
    if (wanted === 'remove') continue
    const before = bytes.subarray(start, end)
    const after =
      wanted === 'leave'
        ? before
        : wanted.reduce((made, edit) => spliced(made, splicesAt(made, 0, edit.path, edit)), before)
    kept.push(after)
    if (after !== before) changed.push({ start, end, by: after })
  }
  return kept.length === elements.length ? changed : [inPlaceOf(bytes, at, elements, kept)]
}

/** The value to insert so that `path` in it leads to `value`. */
function nested(path: Path, value: EditValue): EditValue {
  return path.reduceRight<EditValue>((inner, step) => {
    if (typeof step === 'string') return { [step]: inner }
    if (step !== 0) throw new PathError(`no element ${step} in a list of 0`)
    return [inner]
  }, value)
}
