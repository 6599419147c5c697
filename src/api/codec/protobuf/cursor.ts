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
import { checkDecodable } from '../malformed-body.ts'
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

/** The reads of an element and of a whole object. */
abstract class FieldReader implements Element {
  /** Throws a `PathError` for a path that the schema lacks. */
  protected abstract find(path: Path): FieldAtPath | undefined

  value(path: Path): Scalar | undefined {
    return scalarOf(this.find(path))
  }

  has(path: Path): boolean {
    return isThere(this.find(path))
  }

  count(path: Path): number {
    const found = this.find(path)
    return found?.list === true ? found.pieces.length : 0
  }
}

/** See `Element`. */
export class ProtobufElement extends FieldReader {
  readonly #field: Field
  readonly #pieces: readonly Occurrence[]

  /** `field` is the field of the list. */
  constructor(field: Field, element: Occurrence) {
    super()
    this.#field = elementIn(field)
    this.#pieces = [element]
  }

  protected override find(path: Path): FieldAtPath | undefined {
    return further(this.#field, this.#pieces, path)
  }
}

/** See `Cursor`. */
export class ProtobufCursor extends FieldReader implements Cursor {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly #gvk: GVK
  readonly #top: readonly Occurrence[]

  constructor(gvk: GVK, object: ApiObject) {
    super()
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

  json(path: Path): Json | undefined {
    const found = this.find(path)
    if (!found) return undefined
    const { field, pieces } = found
    checkDecodable(pieces.reduce((sum, { start, end }) => sum + end - start, 0))
    return new MessageReader().field(field, pieces) ?? undefined
  }

  digest(path: Path): string {
    const pieces = this.find(path)?.pieces ?? []
    return pieces
      .map(({ bytes, start, end }) => hash('sha256', bytes.subarray(start, end), 'base64'))
      .join(' ')
  }

  protected override find(path: Path): FieldAtPath | undefined {
    if (isLeftOut(this.#gvk, path[0])) return undefined
    return find(knownSchema(this.#gvk), this.#top, path)
  }
}

const scalarOf = (found: FieldAtPath | undefined): Scalar | undefined =>
  !found || found.list || found.map ? undefined : readScalar(found.field, found.pieces)

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
    return value && further(elementIn(field), [value], deeper)
  }
  const values = occurrences(inside, field)
  if (!field.repeated) return further(field, values, rest)
  if (rest.length === 0) return { field, pieces: values, list: true }
  const element = elementOf(values, step)
  return element && further(elementIn(field), [element], deeper)
}

function further(field: Field, pieces: readonly Occurrence[], path: Path): FieldAtPath | undefined {
  if (path.length === 0) return { field, pieces, list: false }
  // The rest of the path is resolved even in a missing message, so that a wrong path always throws.
  const found = find(messageOf(field), pieces, path)
  return pieces.length === 0 ? undefined : found
}

const text = (value: Scalar | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined

/** The field of one element of a list or map, which JSON always shows. */
function elementIn({ number, type, message }: Field): Field {
  return { number, type, ...(message && { message }), always: true, shown: true }
}
