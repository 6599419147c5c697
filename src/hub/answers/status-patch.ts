import { isDeepStrictEqual } from 'node:util'
import type { MemberChange } from '../../api/codec/members.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import { isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import {
  jsonPatch,
  mergePatch,
  mergeSchemaOf,
  strategicMergePatch,
} from '../../api/kube/patch/patch.ts'
import { badRequest, conflict, StatusError, unsupportedMediaType } from '../../api/kube/status.ts'
import { labelsSetByNode } from './node-labels.ts'

/**
 * A patch that has been read: it makes an object of a kind from another. Throws 400 and 422 where
 * it does not fit.
 */
export type Patch = (gvk: GVK, object: JsonObject) => JsonObject

const readers: Record<string, (patch: Json) => Patch> = {
  'application/strategic-merge-patch+json': (patch) => (gvk, object) =>
    strategicMergePatch(mergeSchemaOf(gvk), object, patch),
  'application/merge-patch+json': (patch) => (_gvk, object) => mergePatch(object, patch),
  'application/json-patch+json': (patch) => (_gvk, object) => jsonPatch(object, patch),
}

/** Throws 415 for a patch of another type, 400 for what is no JSON. */
export function readPatch(contentType: string | undefined, body: Buffer): Patch {
  const reader = readers[(contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? '']
  if (!reader) {
    throw new StatusError(unsupportedMediaType('this patch cannot be made without the cloud'))
  }
  try {
    return reader(JSON.parse(body.toString()) as Json)
  } catch (cause) {
    throw new StatusError(badRequest('the patch is not JSON'), { cause })
  }
}

/** What is patched. */
export interface PatchTarget {
  readonly gvr: GVR
  readonly gvk: GVK
  /** As its writer was last shown it. */
  readonly object: JsonObject
}

/**
 * What a patch of the status of an object changes: members of its status, and of a node also labels
 * and annotations; the rest of the object is not to be written this way (kubernetes
 * pkg/registry/core, the strategies of status). Throws what an API server answers to a patch that
 * does not fit, or is meant for another object or version.
 */
export function statusChanges(patched: PatchTarget, patch: Patch): readonly MemberChange[] {
  const { gvr, gvk, object } = patched
  const after = patch(gvk, object)
  const [was, is] = [membersOf(object['metadata']), membersOf(after['metadata'])]
  const name = textOf(was['name'])
  if (was['uid'] !== is['uid']) {
    const cause = `Precondition failed: UID in precondition: ${textOf(is['uid'])}, UID in object meta: ${textOf(was['uid'])}`
    throw new StatusError(conflict({ ...gvr, name }, cause))
  }
  if (was['resourceVersion'] !== is['resourceVersion']) {
    const cause =
      'the object has been modified; please apply your changes to the latest version and try again'
    throw new StatusError(conflict({ ...gvr, name }, cause))
  }
  const ofStatus = changed('status', membersOf(object['status']), membersOf(after['status']))
  if (gvk.kind !== 'Node') return ofStatus
  const labels = labelsSetByNode(membersOf(was['labels']), membersOf(is['labels']))
  const metadata = (members: JsonObject): JsonObject => ({
    labels: membersOf(members['labels']),
    annotations: membersOf(members['annotations']),
  })
  return [...changed('metadata', metadata(was), { ...metadata(is), labels }), ...ofStatus]
}

const membersOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

const changed = (parent: string, was: JsonObject, is: JsonObject): MemberChange[] =>
  [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .filter((member) => !isDeepStrictEqual(was[member], is[member]))
    .map((member) => ({ path: [parent, member], value: is[member] }))
