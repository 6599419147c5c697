import { hash } from 'node:crypto'
import { asBuffer } from '../../../base/bytes.ts'
import { apiVersionOf, type GVK } from '../../kube/gvk.ts'
import type { Json } from '../../kube/json.ts'
import type { ApiObject } from '../../kube/object.ts'
import { PathError, type Cursor, type Element, type Path, type Scalar } from '../element.ts'
import { checkDecodable, parsedJson } from '../malformed-body.ts'
import { elementsOf, locate, Members, skipSpace, textOf, valueEnd } from './members.ts'

/** See `Element`. */
export class JsonElement implements Element {
  protected readonly bytes: Buffer
  readonly #at: number

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.#at = at
  }

  /** Where the value at a path begins; -1 if there is none. */
  protected locate(path: Path): number {
    return locate(this.bytes, this.#at, path)
  }

  value(path: Path): Scalar | undefined {
    return scalarAt(this.bytes, this.locate(path))
  }

  has(path: Path): boolean {
    const at = this.locate(path)
    if (at < 0 || this.bytes[at] === 0x6e) return false
    return this.bytes[at] !== 0x5b || this.bytes[skipSpace(this.bytes, at + 1)] !== 0x5d
  }

  count(path: Path): number {
    const at = this.locate(path)
    return at < 0 || this.bytes[at] !== 0x5b ? 0 : elementsOf(this.bytes, at).length
  }
}

/** See `Cursor`. The members of the object, and theirs, are scanned once, at the first read. */
export class JsonCursor extends JsonElement implements Cursor {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly #gvk: GVK
  #top: Places | undefined
  readonly #inner = new Map<string, Places>()

  constructor(gvk: GVK, object: ApiObject) {
    super(asBuffer(object.bytes), 0)
    this.namespace = object.namespace
    this.name = object.name
    this.uid = object.uid
    this.resourceVersion = object.resourceVersion
    this.#gvk = gvk
  }

  get kind(): string {
    return this.#gvk.kind
  }

  get apiVersion(): string {
    return apiVersionOf(this.#gvk)
  }

  mentions(text: string): boolean {
    return this.bytes.includes(text) || this.bytes.includes(escapeOf(text))
  }

  label(key: string): string | undefined {
    return text(this.value(['metadata', 'labels', key]))
  }

  annotation(key: string): string | undefined {
    return text(this.value(['metadata', 'annotations', key]))
  }

  json(path: Path): Json | undefined {
    const at = this.locate(path)
    if (at < 0) return undefined
    const end = valueEnd(this.bytes, at)
    checkDecodable(end - at)
    return parsedJson(this.bytes.toString('utf8', at, end)) ?? undefined
  }

  digest(path: Path): string {
    const at = this.locate(path)
    if (at < 0) return ''
    return hash('sha256', this.bytes.subarray(at, valueEnd(this.bytes, at)), 'base64')
  }

  protected override locate(path: Path): number {
    const [first, second] = path
    if (typeof first !== 'string' || first === '*') {
      throw new PathError('a path begins with a field of the object')
    }
    this.#top ??= membersIn(this.bytes, 0)
    const at = this.#top.get(first) ?? -1
    if (typeof second !== 'string' || second === '*') return locate(this.bytes, at, path, 1)
    let inner = this.#inner.get(first)
    if (!inner) {
      inner = membersIn(this.bytes, this.bytes[at] === 0x7b ? at : -1)
      this.#inner.set(first, inner)
    }
    return locate(this.bytes, inner.get(second) ?? -1, path, 2)
  }
}

/**
 * A text that JSON does not write literally contains this: some characters have short escapes
 * besides the `\u` form that all have.
 */
const escapeOf = (text: string): string => (hasShortEscape.test(text) ? '\\' : '\\u')

// oxlint-disable-next-line no-control-regex
const hasShortEscape = /["\\/\u0000-\u001f]/

function scalarAt(bytes: Buffer, at: number): Scalar | undefined {
  const first = at < 0 ? undefined : bytes[at]
  // null, a list or an object.
  if (first === undefined || first === 0x6e || first === 0x5b || first === 0x7b) return undefined
  const end = valueEnd(bytes, at)
  if (first === 0x22) return textOf(bytes, at, end)
  if (first === 0x74) return true
  if (first === 0x66) return false
  return Number(bytes.toString('latin1', at, end))
}

/** Where the values of an object's members begin. */
type Places = ReadonlyMap<string, number>

function membersIn(bytes: Buffer, at: number): Places {
  const top = new Map<string, number>()
  if (at < 0) return top
  for (const members = new Members(bytes, at); members.next();) {
    top.set(members.key, members.valueStart)
  }
  return top
}

const text = (value: Scalar | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined
