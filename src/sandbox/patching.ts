import { isDeepStrictEqual } from 'node:util'
import { now } from '../base/clock.ts'
import { isObject, type Json, type JsonObject } from '../api/kube/json.ts'
import { optionalTextAt, listAt, objectAt, withAt } from '../api/kube/json-at.ts'
import { jsonPatch } from '../api/kube/patch/json-patch.ts'
import { mergePatch } from '../api/kube/patch/merge-patch.ts'
import { mergeSchemaOf } from '../api/kube/patch/merge-schema.ts'
import { strategicMergePatch } from '../api/kube/patch/strategic-merge-patch.ts'
import { badRequest, StatusError, unsupportedMediaType } from '../api/kube/status.ts'
import { bareType, decodePatch, unknownFormat } from './body.ts'
import { apiVersionOfKind, gvkOf, type Kind } from './kinds.ts'
import { timestamp, type KubeObject } from './object.ts'

const types = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/apply-patch+yaml',
]

/** Whether a patch may create its object: server-side apply. */
export const isApply = (contentType: string | undefined): boolean =>
  bareType(contentType) === 'application/apply-patch+yaml'

/**
 * Throws a StatusError 415 for patches a kind does not take; strategic ones are for built-in kinds.
 */
export function checkPatchType(kind: Kind, contentType: string | undefined): void {
  const offered = kind.custom ? types : [...types, 'application/strategic-merge-patch+json']
  if (offered.includes(bareType(contentType))) return
  if (!kind.custom) {
    throw new StatusError({ ...unsupportedMediaType('415: Unsupported Media Type'), details: {} })
  }
  throw new StatusError(unknownFormat(offered))
}

/**
 * The object as a patch leaves it. Throws a StatusError for patches that cannot be read or do not
 * fit.
 */
export function patched(
  kind: Kind,
  object: KubeObject,
  body: Buffer,
  contentType: string | undefined,
): JsonObject {
  const patch = decodePatch(body, false)
  switch (bareType(contentType)) {
    case 'application/json-patch+json':
      return jsonPatch(object, patch)
    case 'application/merge-patch+json':
      return mergePatch(object, patch)
    default:
      return strategicMergePatch(mergeSchemaOf(gvkOf(kind)), object, patch)
  }
}

/**
 * Server-side apply on an object that may exist: the applied fields are merged into it and recorded
 * as owned by the field manager. There are no conflicts, and fields that a manager no longer
 * applies stay.
 */
export function applied(
  kind: Kind,
  object: KubeObject | undefined,
  body: Buffer,
  manager: string,
): JsonObject {
  const patch = decodePatch(body, true)
  if (!isObject(patch)) throw new StatusError(badRequest('error decoding patch: it is no object'))
  if (manager === '') {
    throw new StatusError(
      badRequest(
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
      ),
    )
  }
  const merged = object
    ? kind.custom
      ? mergePatch(object, patch)
      : strategicMergePatch(mergeSchemaOf(gvkOf(kind)), object, patch)
    : patch
  return withManager(kind, merged, patch, manager)
}

function withManager(
  kind: Kind,
  object: JsonObject,
  patch: JsonObject,
  manager: string,
): JsonObject {
  const fieldsV1 = fieldsOf(ownedBy(patch))
  const entries = listAt(object, 'metadata', 'managedFields')
  const isOwn = (entry: Json): boolean =>
    optionalTextAt(entry, 'manager') === manager && optionalTextAt(entry, 'operation') === 'Apply'
  const own = entries.find(isOwn)
  if (own && isDeepStrictEqual(objectAt(own, 'fieldsV1'), fieldsV1)) return object
  const entry = {
    manager,
    operation: 'Apply',
    apiVersion: apiVersionOfKind(kind),
    time: timestamp(now()),
    fieldsType: 'FieldsV1',
    fieldsV1,
  }
  const others = entries.filter((one) => !isOwn(one))
  return withAt(object, ['metadata', 'managedFields'], [entry, ...others])
}

function ownedBy(patch: JsonObject): JsonObject {
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = patch
  const { name: _name, namespace: _namespace, managedFields: _managed, ...own } = objectAt(metadata)
  return { ...(Object.keys(own).length > 0 && { metadata: own }), ...rest }
}

/** A list counts as one field, whatever its merge key. */
const fieldsOf = (value: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      `f:${name}`,
      isObject(member) ? fieldsOf(member) : {},
    ]),
  )
