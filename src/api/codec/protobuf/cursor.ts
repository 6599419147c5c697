import { hash } from 'node:crypto'
import { asBuffer } from '../../../base/bytes.ts'
import { apiVersionOf, type GVK } from '../../kube/gvk.ts'
import type { Json } from '../../kube/json.ts'
import type { ApiObject } from '../../kube/object.ts'
import type { Cursor, Element, Path, Scalar } from '../element.ts'
import type { Field, MessageSchema } from '../schema/schema.ts'
import { fieldNamed, isLeftOut, knownSchema, messageOf } from './field-path.ts'
import { readScalar } from './scalar.ts'
import { elementOf, entriesOf, occurrences, whole, type Occurrence } from './values.ts'
import { checkDecodable } from '../decode-limit.ts'
import { MessageReader } from './message/decode.ts'

/**
 * The value at a path, in pieces if its message was written in several, and its field in the
 * schema.
 */
interface FieldAtPath {
  readonly field: Field
  readonly pieces: readonly Occurrence[]
  /** The pieces are all elements of a list, not one value. */
  readonly list: boolean
  /** The pieces are all entries of a map. */
  readonly map?: true
}

/** See `Cursor`. */
export class ProtobufCursor implements Cursor {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly #gvk: GVK
  readonly #top: readonly Occurrence[]

  constructor(gvk: GVK, object: ApiObject) {
    this.namespace = object.namespace
    this.name = object.name
    this.uid = object.uid
    this.resourceVersion = object.resourceVersion
    this.#gvk = gvk
    this.#top = [whole(asBuffer(object.bytes))]
  }

  get kind(): string {
    return this.#gvk.kind
  }

  get apiVersion(): string {
    return apiVersionOf(this.#gvk)
  }

  mentions(text: string): boolean {
    return this.#top.some(({ bytes }) => bytes.includes(text))
  }

  label(key: string): string | undefined {
    return text(this.value(['metadata', 'labels', key]))
  }

  annotation(key: string): string | undefined {
    return text(this.value(['metadata', 'annotations', key]))
  }

  value(path: Path): Scalar | undefined {
    return scalarOf(this.#find(path))
  }

  has(path: Path): boolean {
    return isThere(this.#find(path))
  }

  count(path: Path): number {
    return countOf(this.#find(path))
  }

  json(path: Path): Json | undefined {
    if (isLeftOut(this.#gvk, path[0])) return undefined
    return decodedAt(knownSchema(this.#gvk), this.#top, path)
  }

  digest(path: Path): string {
    const pieces = this.#find(path)?.pieces ?? []
    return pieces
      .map(({ bytes, start, end }) => hash('sha256', bytes.subarray(start, end), 'base64'))
      .join(' ')
  }

  #find(path: Path): FieldAtPath | undefined {
    if (isLeftOut(this.#gvk, path[0])) return undefined
    return find(knownSchema(this.#gvk), this.#top, path)
  }
}

/** See `Element`. */
export class ProtobufElement implements Element {
  readonly #field: Field
  readonly #pieces: readonly Occurrence[]

  /** `field` is the field of the list. */
  constructor(field: Field, element: Occurrence) {
    this.#field = { ...field, shown: true }
    this.#pieces = [element]
  }

  value(path: Path): Scalar | undefined {
    return scalarOf(this.#find(path))
  }

  has(path: Path): boolean {
    return isThere(this.#find(path))
  }

  count(path: Path): number {
    return countOf(this.#find(path))
  }

  #find(path: Path): FieldAtPath | undefined {
    return further(this.#field, this.#pieces, path)
  }
}

const scalarOf = (found: FieldAtPath | undefined): Scalar | undefined =>
  !found || found.list || found.map ? undefined : readScalar(found.field, found.pieces)

const countOf = (found: FieldAtPath | undefined): number =>
  found?.list === true ? found.pieces.length : 0

function isThere(found: FieldAtPath | undefined): boolean {
  if (!found) return false
  const { field, pieces, list, map } = found
  if (map) return pieces.length > 0
  if (list || field.type !== 'message')
    return list ? pieces.length > 0 : scalarOf(found) !== undefined
  return pieces.length > 0 || field.shown === true
}

/** A field by its JSON name, and the pieces of the message that contains it. */
function fieldIn(
  schema: MessageSchema,
  pieces: readonly Occurrence[],
  name: Path[number] | undefined,
) {
  const { through, field } = fieldNamed(schema, name)
  const inside = through.reduce<readonly Occurrence[]>(
    (outer, embedded) => occurrences(outer, embedded),
    pieces,
  )
  return { field, inside }
}

function find(
  schema: MessageSchema,
  pieces: readonly Occurrence[],
  [name, ...rest]: Path,
): FieldAtPath | undefined {
  const { field, inside } = fieldIn(schema, pieces, name)
  const [step, ...deeper] = rest
  if (field.map) {
    if (rest.length === 0)
      return { field, pieces: occurrences(inside, field), list: false, map: true }
    if (typeof step !== 'string') return undefined
    const value = entriesOf(inside, field).get(step)
    // JSON shows every entry of a map.
    return value && further({ ...field, shown: true }, [value], deeper)
  }
  const values = occurrences(inside, field)
  if (!field.repeated) return further(field, values, rest)
  if (rest.length === 0) return { field, pieces: values, list: true }
  const element = elementOf(values, step)
  return element && further({ ...field, shown: true }, [element], deeper)
}

function further(field: Field, pieces: readonly Occurrence[], path: Path): FieldAtPath | undefined {
  if (path.length === 0) return { field, pieces, list: false }
  // The rest of the path is resolved even in a missing message, so that a wrong path always throws.
  const found = find(messageOf(field), pieces, path)
  return pieces.length === 0 ? undefined : found
}

const text = (value: Scalar | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined

/** The JSON value at a path; `undefined` for a missing value and null. See `Cursor`. */
function decodedAt(
  schema: MessageSchema,
  pieces: readonly Occurrence[],
  [name, ...rest]: Path,
): Json | undefined {
  const { field, inside } = fieldIn(schema, pieces, name)
  const values = occurrences(inside, field)
  if (rest.length === 0) return decoded(field, values)
  if (!field.map && !field.repeated) return decodedInside(field, values, rest)
  const [step, ...deeper] = rest
  const one = field.map ? entriesOf(inside, field).get(String(step)) : elementOf(values, step)
  return one && decodedInside(elementIn(field), [one], deeper)
}

function decodedInside(field: Field, pieces: readonly Occurrence[], path: Path): Json | undefined {
  if (path.length === 0) return decoded(field, pieces)
  const found = decodedAt(messageOf(field), pieces, path)
  return pieces.length === 0 ? undefined : found
}

/** The field of one element of a list or map, which JSON always shows. */
function elementIn({ number, type, message }: Field): Field {
  return { number, type, ...(message && { message }), always: true, shown: true }
}

function decoded(field: Field, values: readonly Occurrence[]): Json | undefined {
  checkDecodable(values.reduce((sum, { start, end }) => sum + end - start, 0))
  return new MessageReader().field(field, values) ?? undefined
}
