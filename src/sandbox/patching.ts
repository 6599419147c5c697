import type { JsonObject } from '../api/kube/json.ts'
import { mergePatch } from '../api/kube/patch/merge-patch.ts'
import { mergeSchemaOf } from '../api/kube/patch/merge-schema.ts'
import { strategicMergePatch } from '../api/kube/patch/strategic-merge-patch.ts'
import { StatusError, unsupportedMediaType } from '../api/kube/status.ts'
import { bareType, decodePatch, unknownFormat } from './body.ts'
import { gvkOf, type Kind } from './kinds.ts'
import type { KubeObject } from './object.ts'

const mergeType = 'application/merge-patch+json'
const strategicType = 'application/strategic-merge-patch+json'

/**
 * Throws a StatusError 415 for patches a kind does not take; strategic ones are for built-in kinds.
 */
export function checkPatchType(kind: Kind, contentType: string | undefined): void {
  const offered = kind.custom ? [mergeType] : [mergeType, strategicType]
  if (offered.includes(bareType(contentType))) return
  if (!kind.custom)
    throw new StatusError({ ...unsupportedMediaType('415: Unsupported Media Type'), details: {} })
  throw new StatusError(unknownFormat(offered))
}

/** The object as a patch leaves it. Throws a StatusError for patches that cannot be read. */
export function patched(
  kind: Kind,
  object: KubeObject,
  body: Buffer,
  contentType: string | undefined,
): JsonObject {
  const patch = decodePatch(body)
  return bareType(contentType) === mergeType
    ? mergePatch(object, patch)
    : strategicMergePatch(mergeSchemaOf(gvkOf(kind)), object, patch)
}
