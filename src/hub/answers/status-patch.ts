import { isDeepStrictEqual } from 'node:util'
import type { MemberChange } from '../../api/codec/members.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Json, JsonObject } from '../../api/kube/json.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import { jsonPatch } from '../../api/kube/patch/json-patch.ts'
import { mergePatch } from '../../api/kube/patch/merge-patch.ts'
import { mergeSchemaOf } from '../../api/kube/patch/merge-schema.ts'
import { strategicMergePatch } from '../../api/kube/patch/strategic-merge-patch.ts'
import { badRequest, conflict, StatusError, unsupportedMediaType } from '../../api/kube/status.ts'

/** Applies a patch to an object of a kind. Throws 400 or 422 where the patch does not fit. */
export type Patch = (gvk: GVK, object: JsonObject) => JsonObject

const readers: Record<string, (patch: Json) => Patch> = {
  'application/strategic-merge-patch+json': (patch) => (gvk, object) =>
    strategicMergePatch(mergeSchemaOf(gvk), object, patch),
  'application/merge-patch+json': (patch) => (_gvk, object) => mergePatch(object, patch),
  'application/json-patch+json': (patch) => (_gvk, object) => jsonPatch(object, patch),
}

/** Throws 415 for an unsupported patch type, 400 for a body that is not JSON. */
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

/** The object that a patch applies to. */
export interface PatchTarget {
  readonly gvr: GVR
  readonly gvk: GVK
  /** The object as its writer last read it. */
  readonly object: JsonObject
}

/**
 * The changes that a patch of the status subresource makes: to members of the status, and for a
 * node also to labels and annotations. Changes elsewhere are dropped (kubernetes pkg/registry/core,
 * the status strategies). Throws the StatusError of an API server for a patch that does not fit, or
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
  const ofStatus = changed('status', objectAt(object, 'status'), objectAt(after, 'status'))
  if (gvk.kind !== 'Node') return ofStatus
  const labels = labelsSetByNode(objectAt(was, 'labels'), objectAt(is, 'labels'))
  const metadata = (members: JsonObject): JsonObject => ({
    labels: objectAt(members, 'labels'),
    annotations: objectAt(members, 'annotations'),
  })
  return [...changed('metadata', metadata(was), { ...metadata(is), labels }), ...ofStatus]
}

const changed = (parent: string, was: JsonObject, is: JsonObject): MemberChange[] =>
  [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .filter((member) => !isDeepStrictEqual(was[member], is[member]))
    .map((member) => ({ path: [parent, member], value: is[member] }))

/** Reserved labels that a kubelet may set on its node (kubelet pkg/apis/well_known_labels.go). */
const kubeletLabels = new Set([
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
])

const kubeletDomains = ['kubelet.kubernetes.io', 'node.kubernetes.io']
const reservedDomains = ['kubernetes.io', 'k8s.io']
const restricted = 'node-restriction.kubernetes.io'

/**
 * The labels of a node after its kubelet has changed them, as the NodeRestriction admission plug-in
 * allows it (plugin/pkg/admission/noderestriction): labels that a kubelet may not set stay as they
 * were.
 */
function labelsSetByNode(before: JsonObject, after: JsonObject): JsonObject {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return Object.fromEntries(
    names.flatMap((name): [string, Json][] => {
      const value = (maySet(name) ? after : before)[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

function maySet(label: string): boolean {
  const [domain] = label.includes('/') ? label.split('/', 1) : ['']
  const isIn = (other: string): boolean =>
    domain === other || domain?.endsWith(`.${other}`) === true
  if (isIn(restricted)) return false
  return !reservedDomains.some(isIn) || kubeletLabels.has(label) || kubeletDomains.some(isIn)
}
