import { isDeepStrictEqual } from 'node:util'
import type { MemberChange } from '../../api/codec/members.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Json, JsonObject } from '../../api/kube/json.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import { mergeSchemaOf } from '../../api/kube/patch/merge-schema.ts'
import { strategicMergePatch } from '../../api/kube/patch/strategic-merge-patch.ts'
import { badRequest, conflict, StatusError, unsupportedMediaType } from '../../api/kube/status.ts'

/** Applies a patch to an object of a kind. Throws 400 or 422 where the patch does not fit. */
export type Patch = (gvk: GVK, object: JsonObject) => JsonObject

/** Throws 415 for another patch type than a kubelet's, 400 for a body that is not JSON. */
export function readPatch(contentType: string | undefined, body: Buffer): Patch {
  const [type = ''] = (contentType ?? '').split(';')
  if (type.trim().toLowerCase() !== 'application/strategic-merge-patch+json') {
    throw new StatusError(unsupportedMediaType('this patch cannot be made without the cloud'))
  }
  try {
    const patch = JSON.parse(body.toString()) as Json
    return (gvk, object) => strategicMergePatch(mergeSchemaOf(gvk), object, patch)
  } catch (cause) {
    throw new StatusError(badRequest('the patch is not JSON'), { cause })
  }
}

/** The object that a patch applies to. */
export interface PatchTarget {
  readonly gvr: GVR
  readonly gvk: GVK
  /** The object as its writer has read it. */
  readonly object: JsonObject
}

/**
 * The changes that a patch of the status subresource makes to members of the status. Changes
 * elsewhere are dropped. Throws the StatusError of an API server for a patch that does not fit, or
 * that is meant for another UID or resource version.
 */
export function statusChanges(patched: PatchTarget, patch: Patch): readonly MemberChange[] {
  const { gvr, gvk, object } = patched
  const after = patch(gvk, object)
  const [was, is] = [objectAt(object, 'metadata'), objectAt(after, 'metadata')]
  const name = textAt(was, 'name')
  if (was['uid'] !== is['uid']) {
    const cause = `Precondition failed: UID in precondition: ${textAt(is, 'uid')}, UID in object meta: ${textAt(was, 'uid')}`
    throw new StatusError(conflict({ ...gvr, name }, cause))
  }
  if (was['resourceVersion'] !== is['resourceVersion']) {
    const cause =
      'the object has been modified; please apply your changes to the latest version and try again'
    throw new StatusError(conflict({ ...gvr, name }, cause))
  }
  return changed(objectAt(object, 'status'), objectAt(after, 'status'))
}

const changed = (was: JsonObject, is: JsonObject): MemberChange[] =>
  [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .filter((member) => !isDeepStrictEqual(was[member], is[member]))
    .map((member) => ({ path: ['status', member], value: is[member] }))
