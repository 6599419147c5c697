import { asBuffer } from '../../base/bytes.ts'
import type { GVK } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import type { Edit } from './change.ts'
import type { Path } from './element.ts'
import { editJson } from './json/edit.ts'
import { isPartial } from './partial.ts'
import { PathError } from './path-error.ts'
import { editProtobuf } from './protobuf/edit.ts'

export type { Edit, EditValue, ElementChange } from './change.ts'

/**
 * The object with the edits made one after the other, everything else in it as it was; the same
 * instance where they change nothing. What an object is known by (kind, namespace, name, uid,
 * resource version) stays: an edit of it throws a `PathError`, as do paths and values the kind has
 * no place for. Of a PartialObjectMetadata or a Table only metadata is edited, other edits mean
 * what it does not show.
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

/**
 * The object as if it had been written at another version: what a watch shows of one that is gone.
 */
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
