import { asBuffer } from '../../base/bytes.ts'
import type { GVK } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import type { Edit } from './change.ts'
import { PathError, type Path } from './element.ts'
import { editJson } from './json/edit.ts'
import { editProtobuf } from './protobuf/edit.ts'

export type { Edit, EditValue, ElementChange } from './change.ts'

/**
 * The object with the edits applied in order and all other bytes unchanged; the same instance if
 * they change nothing. Throws a `PathError` for an edit of the object's identity (kind, namespace,
 * name, uid, resource version), and for a path or value that the kind cannot hold.
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
    bytes = apply(encoding, gvk, bytes, edit)
  }
  return changed(object, bytes)
}

/**
 * The object with another resource version: a watch shows a deleted object at the version of its
 * deletion.
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
  encoding === 'json' ? editJson(bytes, edit) : editProtobuf(gvk, bytes, edit)

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
