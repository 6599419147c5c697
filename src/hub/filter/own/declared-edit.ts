import type { Cursor, Path } from '../../../api/codec/cursor.ts'
import { applyEdits, type Edit, type EditValue } from '../../../api/codec/edit.ts'
import { PathError } from '../../../api/codec/element.ts'
import { isList, isObject, type Json } from '../../../api/kube/json.ts'
import type { VariableValues } from '../cel/evaluation.ts'
import type { Program } from '../cel/program.ts'
import { fieldShape, type Shape } from '../cel/shape.ts'
import { Failure, keysOf, listOf, memberOf, type Value } from '../cel/value.ts'
import type { ResourceShapes } from './resources.ts'

/** An edit that a declared filter makes. */
export type DeclaredEdit =
  | { readonly op: 'remove'; readonly path: Path }
  | { readonly op: 'set'; readonly path: Path; readonly value: EditValue | Program }

/** The edit for one object. Throws where its expression fails. */
export function editFor(edit: DeclaredEdit, cursor: Cursor, known: VariableValues): Edit {
  if (edit.op === 'remove') return edit
  const { path, value } = edit
  return isProgram(value)
    ? { op: 'set', path, value: editValueOf(value.evaluate(cursor, known)) }
    : { op: 'set', path, value }
}

const isProgram = (value: EditValue | Program): value is Program =>
  typeof value === 'object' && 'evaluate' in value && typeof value.evaluate === 'function'

/**
 * Why an edit is impossible in every known version of a resource; `undefined` where it is possible.
 */
export function whyImpossible(
  edit: DeclaredEdit,
  { versions }: ResourceShapes,
): string | undefined {
  const reasons = versions.map(({ gvk, shape, inProtobuf }) => {
    // Into a list of one element: an empty list would accept any path.
    const path = edit.path.map((step) => (step === '*' || typeof step === 'number' ? 0 : step))
    try {
      checkPath(shape, path)
      const value = edit.op === 'remove' || isProgram(edit.value) ? undefined : edit.value
      const tried: Edit = value === undefined ? { op: 'remove', path } : { op: 'set', path, value }
      const empty = { namespace: '', name: '', uid: '', resourceVersion: '' }
      const bytes = Buffer.from(inProtobuf ? '' : '{}')
      applyEdits(inProtobuf ? 'protobuf' : 'json', gvk, { ...empty, bytes }, [tried])
      return undefined
    } catch (cause) {
      if (!(cause instanceof PathError)) throw cause
      return cause.message
    }
  })
  return reasons.includes(undefined) ? undefined : reasons[0]
}

function checkPath(shape: Shape, [step, ...rest]: Path): void {
  if (step === undefined || shape.kind === 'any') return
  if (shape.kind === 'scalar') throw new PathError(`${step} in a value without fields`)
  if (shape.kind === 'message') checkPath(fieldShape(shape.schema, String(step)), rest)
  else if ((typeof step === 'number') === (shape.kind === 'list')) checkPath(shape.of, rest)
  else throw new PathError(`no ${shape.kind} has ${step}`)
}

/**
 * A constant as an edit value; `undefined` where it contains null, which no field can be set to.
 */
export function constantOf(json: Json): EditValue | undefined {
  if (json === null) return undefined
  if (isList(json)) {
    const items = json.map(constantOf)
    return items.every((item) => item !== undefined) ? items : undefined
  }
  if (!isObject(json)) return json
  const members = Object.entries(json).map(([key, value]) => [key, constantOf(value)] as const)
  return members.some(([, value]) => value === undefined)
    ? undefined
    : (Object.fromEntries(members) as Record<string, EditValue>)
}

/** The result of an expression as an edit value. Throws where an edit cannot take it. */
function editValueOf(value: Value): EditValue {
  if (value instanceof Failure) throw new Error(value.reason)
  if (value === null) throw new Error('a field cannot be set to null')
  if (typeof value === 'bigint') {
    if (!Number.isSafeInteger(Number(value))) throw new Error('a number beyond 2^53')
    return Number(value)
  }
  if (typeof value !== 'object') return value
  const list = listOf(value)
  if (list) return Array.from({ length: list.length }, (_, at) => editValueOf(list.at(at)))
  const keys = keysOf(value) ?? []
  return Object.fromEntries(
    keys.map((key) => {
      if (typeof key !== 'string') throw new Error('a map key that is no string')
      return [key, editValueOf(memberOf(value, key) ?? null)]
    }),
  )
}

const step = /\.?([A-Za-z_$][\w$-]*)|\[(\d{1,4})\]|\[(\*)\]|\[(?:'([^'\]]+)'|"([^"\]]+)")\]/y

/**
 * Parses a path in an object, such as `spec.ports[*].protocol` or
 * `metadata.labels['example.com/x']`; `undefined` where the text is no path.
 */
export function parsePath(text: string): Path | undefined {
  const path: (string | number)[] = []
  step.lastIndex = 0
  while (step.lastIndex < text.length) {
    const from = step.lastIndex
    const [whole, name, index, all, ...quoted] = step.exec(text) ?? []
    // Only the first step has no dot before its name.
    if (whole === undefined || (name !== undefined && whole.startsWith('.') !== from > 0))
      return undefined
    path.push(index === undefined ? (name ?? all ?? quoted[0] ?? quoted[1] ?? '') : Number(index))
  }
  return typeof path[0] === 'string' && path[0] !== '*' ? path : undefined
}
