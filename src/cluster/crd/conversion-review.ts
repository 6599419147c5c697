import { isList, isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { valueAt, textAt } from '../../api/kube/json-at.ts'
import { checkDepth } from '../../api/kube/patch/limits.ts'
import { badRequest, StatusError } from '../../api/kube/status.ts'
import { convertedPool } from './conversion.ts'
import { poolVersions, type PoolVersion } from './schema.ts'

/**
 * Answers a ConversionReview (apiextensions.k8s.io/v1) of pools: all objects in the desired
 * version, in their order, or none and the reason. Throws a StatusError (400) for anything else.
 */
export function reviewConversion(review: Json): JsonObject {
  checkDepth(review)
  const isReview =
    textAt(review, 'apiVersion') === 'apiextensions.k8s.io/v1' &&
    textAt(review, 'kind') === 'ConversionReview'
  const uid = textAt(review, 'request', 'uid')
  if (!isReview || uid === '')
    throw new StatusError(
      badRequest('this is no ConversionReview of apiextensions.k8s.io/v1 with a uid'),
    )
  const converted = all(valueAt(review, 'request', 'objects'), wanted(review))
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    response:
      typeof converted === 'string'
        ? { uid, convertedObjects: [], result: { status: 'Failure', message: converted } }
        : { uid, convertedObjects: converted, result: { status: 'Success' } },
  }
}

const wanted = (review: Json): PoolVersion | undefined => {
  const apiVersion = textAt(review, 'request', 'desiredAPIVersion')
  return poolVersions.find((version) => apiVersion === `apps.openyurt.io/${version}`)
}

/** Or why not. */
function all(objects: Json | undefined, to: PoolVersion | undefined): JsonObject[] | string {
  if (to === undefined) return 'this is no version of NodePool there is'
  if (!isList(objects) || !objects.every(isObject)) return 'objects is no list of objects'
  try {
    return objects.map((object) => convertedPool(object, to))
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause)
  }
}
