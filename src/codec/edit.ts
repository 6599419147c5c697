import { asBuffer } from '../base/bytes.ts'
import type { GVK } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import type { Element, Path, Scalar } from './cursor.ts'
import { editJson } from './json/edit.ts'
import { isPartial } from './partial.ts'
import { PathError } from './path-error.ts'
import { editProtobuf } from './protobuf/edit.ts'

/** What an edit may put in a place: values and lists and objects of them, by their JSON names. */
export type EditValue = Scalar | readonly EditValue[] | { readonly [key: string]: EditValue }

/**
 * One change. Paths name fields by their JSON names, whatever the encoding; `*` means every element, be they none. `set` makes the
 * parents that are missing, and appends where the position is the length of the list. `remove` of what is not there changes nothing.
 * `each` judges the elements of the list at its path one by one, in one pass however many they are; what is left keeps its bytes.
 */
export type Edit =
  | { readonly op: 'set'; readonly path: Path; readonly value: EditValue }
  | { readonly op: 'remove'; readonly path: Path }
  | { readonly op: 'each'; readonly path: Path; readonly change: ElementChange }

/** What becomes of an element of a list; paths of the edits begin at the element. */
export type ElementChange = (element: Element) => 'leave' | 'remove' | readonly Edit[]

/**
 * The object with the edits made one after the other, everything else in it as it was; the same instance where they change nothing. What
 * an object is known by (kind, namespace, name, uid, resource version) stays: an edit of it throws a `PathError`, as do paths and values
 * the kind has no place for. Of a PartialObjectMetadata or a Table only metadata is edited, other edits mean what it does not show.
 */
export function applyEdits(
  encoding: Encoding,
  gvk: GVK,
  object: ApiObject,
  edits: readonly Edit[],
): ApiObject {
  let bytes = asBuffer(object.bytes)
  for (const edit of edits) {
    refuseIdentity(edit.path)
    if (isPartial(gvk) && edit.path[0] !== 'metadata') continue
    bytes = apply(encoding, gvk, bytes, edit)
  }
  return changed(object, bytes)
}

/** The object as if it had been written at another version: what a watch shows of one that is gone. */
export function atVersion(
  encoding: Encoding,
  gvk: GVK,
  object: ApiObject,
  resourceVersion: string,
): ApiObject {
  const path = ['metadata', 'resourceVersion']
  const edit: Edit = { op: 'set', path, value: resourceVersion }
  const bytes = apply(encoding, gvk, asBuffer(object.bytes), edit)
  return { ...changed(object, bytes), resourceVersion }
}

const apply = (encoding: Encoding, gvk: GVK, bytes: Buffer, edit: Edit): Buffer =>
  encoding === 'json' ? editJson(gvk, bytes, edit) : editProtobuf(gvk, bytes, edit)

const changed = (object: ApiObject, bytes: Buffer): ApiObject =>
  bytes.equals(object.bytes) ? object : { ...object, bytes }

const identity = new Set<string | number | undefined>([
  undefined,
  'namespace',
  'name',
  'uid',
  'resourceVersion',
])

function refuseIdentity([first, second]: Path): void {
  if (
    first === undefined ||
    first === 'kind' ||
    first === 'apiVersion' ||
    (first === 'metadata' && identity.has(second))
  ) {
    throw new PathError('an edit of what the object is known by')
  }
}
