import { isList, isObject, parseJson, type Json, type JsonObject } from '../../api/kube/json.ts'
import { valueAt, objectAt, textAt, withAt } from '../../api/kube/json-at.ts'
import { hostNetworkLabel } from '../../api/kube/node-pool.ts'
import { checkDepth } from '../../api/kube/patch/limits.ts'
import { badRequest, StatusError } from '../../api/kube/status.ts'
import { messageOf } from '../../config/settings.ts'
import { fieldsOf, poolVersions, type PoolVersion, type Schema } from './node-pool-schema.ts'

/** On a NodePool: the fields of other versions that its own version lacks. */
export const carriedAnnotation = 'nodepool.openyurt.io/fields-of-other-versions'

/**
 * On a NodePool: states in a version without the field that the pool has a host network (openyurt
 * pkg/apis/apps, conversions).
 */
const hostNetworkAnnotation = hostNetworkLabel

const sections = ['spec', 'status'] as const

/**
 * The content of the annotation. `hostNetworkAnnotation` is the value of that annotation in
 * versions that do not read it, where v1alpha1 needs another one; `null`: it was absent.
 */
interface CarriedFields {
  readonly spec: JsonObject
  readonly status: JsonObject
  readonly hostNetworkAnnotation?: string | null
}

/** A pool with the fields of all versions. `annotation` is the host-network annotation. */
interface MergedPool {
  readonly spec: JsonObject
  readonly status: JsonObject
  readonly annotation: string | undefined
}

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
  const to = versionNamed(textAt(review, 'request', 'desiredAPIVersion'))
  const converted = convertedPools(valueAt(review, 'request', 'objects'), to)
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    response:
      typeof converted === 'string'
        ? { uid, convertedObjects: [], result: { status: 'Failure', message: converted } }
        : { uid, convertedObjects: converted, result: { status: 'Success' } },
  }
}

const versionNamed = (apiVersion: string): PoolVersion | undefined =>
  poolVersions.find((version) => apiVersion === `apps.openyurt.io/${version}`)

/** The pools in that version, or why there are none. */
function convertedPools(
  objects: Json | undefined,
  to: PoolVersion | undefined,
): JsonObject[] | string {
  if (to === undefined) return 'this is no version of NodePool there is'
  if (!isList(objects) || !objects.every(isObject)) return 'objects is no list of objects'
  try {
    return objects.map((object) => convertedPool(object, to))
  } catch (cause) {
    return messageOf(cause)
  }
}

/**
 * A pool in another version, `apps.openyurt.io/<to>`. Nothing is lost either way: fields that `to`
 * lacks are carried in an annotation, and become fields again in a version that has them. Where a
 * field and the annotation both have a value, the field wins: it was written last. Throws an Error
 * for an object that is no pool.
 */
export function convertedPool(pool: JsonObject, to: PoolVersion): JsonObject {
  const from = versionOf(pool)
  if (from === to) return pool
  return projected(pool, mergedPoolOf(pool, from), to)
}

/** The version of a pool. Throws an Error for an object that is no pool. */
function versionOf(pool: JsonObject): PoolVersion {
  const apiVersion = textAt(pool, 'apiVersion')
  const version = versionNamed(apiVersion)
  if (version === undefined || textAt(pool, 'kind') !== 'NodePool')
    throw new Error(`${apiVersion} ${textAt(pool, 'kind')} is no version of NodePool there is`)
  return version
}

function mergedPoolOf(pool: JsonObject, version: PoolVersion): MergedPool {
  const carried = carriedFieldsOf(pool, version)
  const own = { spec: objectAt(pool, 'spec'), status: objectAt(pool, 'status') }
  const annotation = valueAt(pool, 'metadata', 'annotations', hostNetworkAnnotation)
  const merged: MergedPool = {
    spec: { ...carried?.spec, ...own.spec },
    // A pool without a status is new: a carried status comes from the pool that it was exported
    // from.
    status: isObject(valueAt(pool, 'status')) ? { ...carried?.status, ...own.status } : {},
    annotation: typeof annotation === 'string' ? annotation : undefined,
  }
  if (version === 'v1alpha1') return withV1alpha1Annotation(merged, carried)
  const isOldWay =
    version === 'v1beta1' &&
    carried === undefined &&
    !('hostNetwork' in own.spec) &&
    isTrueText(merged.annotation)
  return isOldWay ? { ...merged, spec: { ...merged.spec, hostNetwork: true } } : merged
}

/**
 * v1alpha1 has the annotation in place of the field: it counts where it differs from the value that
 * the conversion put there.
 */
function withV1alpha1Annotation(
  merged: MergedPool,
  carried: CarriedFields | undefined,
): MergedPool {
  const shownTrue = carried?.spec['hostNetwork'] === true
  const said = isTrueText(merged.annotation)
  if (said !== shownTrue) {
    const spec = withAt(merged.spec, ['hostNetwork'], said ? true : undefined)
    return { ...merged, spec }
  }
  const before = carried?.hostNetworkAnnotation
  const isAsShown = merged.annotation === (shownTrue ? 'true' : undefined)
  return before === undefined || !isAsShown
    ? merged
    : { ...merged, annotation: before ?? undefined }
}

function projected(pool: JsonObject, merged: MergedPool, to: PoolVersion): JsonObject {
  const shown = to === 'v1alpha1' ? annotationForV1alpha1(merged) : merged.annotation
  const carried = {
    ...carriedSections(merged, to),
    ...(shown !== merged.annotation && { hostNetworkAnnotation: merged.annotation ?? null }),
  }
  // Even an empty annotation has a meaning: the field counts, and not the host-network annotation.
  const isNeeded =
    Object.keys(carried).length > 0 ||
    (to === 'v1beta1' && isTrueText(merged.annotation) && !('hostNetwork' in merged.spec))
  const annotated = withAnnotations(pool, {
    [hostNetworkAnnotation]: shown,
    [carriedAnnotation]: isNeeded ? JSON.stringify(carried) : undefined,
  })
  const version = `apps.openyurt.io/${to}`
  return sections.reduce<JsonObject>(
    (sum, section) => {
      const fields = ownFields(merged[section], section, to)
      const isThere = valueAt(pool, section) !== undefined || Object.keys(fields).length > 0
      return isThere ? withAt(sum, [section], fields) : sum
    },
    { ...annotated, apiVersion: version },
  )
}

const annotationForV1alpha1 = ({ spec, annotation }: MergedPool): string | undefined => {
  if (spec['hostNetwork'] === true) return isTrueText(annotation) ? annotation : 'true'
  return isTrueText(annotation) ? undefined : annotation
}

const isTrueText = (annotation: string | undefined): boolean => annotation?.toLowerCase() === 'true'

/** Unknown fields stay where they are: the API server prunes them. */
const ownFields = (fields: JsonObject, section: 'spec' | 'status', to: PoolVersion): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([name]) => Object.hasOwn(fieldsOf[to][section], name) || !knownAnywhere(section, name),
    ),
  )

const knownAnywhere = (section: 'spec' | 'status', name: string): boolean =>
  poolVersions.some((version) => Object.hasOwn(fieldsOf[version][section], name))

function carriedSections(merged: MergedPool, to: PoolVersion): JsonObject {
  const carried = sections.map((section) => {
    const own = ownFields(merged[section], section, to)
    const others = Object.entries(merged[section]).filter(([name]) => !Object.hasOwn(own, name))
    return [section, Object.fromEntries(others)] as const
  })
  return Object.fromEntries(carried.filter(([, fields]) => Object.keys(fields).length > 0))
}

/** `undefined` where the annotation is missing or malformed: any client may have written it. */
function carriedFieldsOf(pool: JsonObject, version: PoolVersion): CarriedFields | undefined {
  const said = parseJson(textAt(pool, 'metadata', 'annotations', carriedAnnotation))
  if (!isObject(said)) return undefined
  const before = said['hostNetworkAnnotation']
  return {
    spec: validFields(objectAt(said, 'spec'), 'spec', version),
    status: validFields(objectAt(said, 'status'), 'status', version),
    ...((typeof before === 'string' || before === null) && { hostNetworkAnnotation: before }),
  }
}

/**
 * Only fields that `version` lacks, with values that are valid in the version that has them: the
 * API server does not check them.
 */
const validFields = (
  fields: JsonObject,
  section: 'spec' | 'status',
  version: PoolVersion,
): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => {
      if (Object.hasOwn(fieldsOf[version][section], name)) return false
      const owner = poolVersions.find((other) => Object.hasOwn(fieldsOf[other][section], name))
      const schema = owner && fieldsOf[owner][section][name]
      return schema !== undefined && fits(schema, value)
    }),
  )

/** Annotations set, or taken out where `undefined`; without any left there is no map of them. */
function withAnnotations(
  pool: JsonObject,
  changes: Readonly<Record<string, string | undefined>>,
): JsonObject {
  const before = objectAt(pool, 'metadata', 'annotations')
  const after = Object.entries(changes).reduce(
    (sum, [name, value]) => withAt(sum, [name], value),
    before,
  )
  const isNone = Object.keys(after).length === 0
  return withAt(pool, ['metadata', 'annotations'], isNone ? undefined : after)
}

/** Whether `value` is valid under `schema`. */
function fits(schema: Schema, value: Json): boolean {
  switch (schema.type) {
    case 'boolean':
      return typeof value === 'boolean'
    case 'integer':
      return Number.isInteger(value) && Math.abs(value as number) < 2 ** 31
    case 'string':
      return typeof value === 'string' && fitsText(schema, value)
    case 'array':
      return isList(value) && value.every((item) => !schema.items || fits(schema.items, item))
    case 'object':
      return isObject(value) && fitsObject(schema, Object.entries(value))
  }
}

const fitsText = ({ enum: words, format }: Schema, value: string): boolean =>
  (words?.includes(value) ?? true) && (format !== 'date-time' || !Number.isNaN(Date.parse(value)))

function fitsObject(schema: Schema, members: readonly (readonly [string, Json])[]): boolean {
  const { properties, additionalProperties, required = [] } = schema
  const known = new Map(Object.entries(properties ?? {}))
  const named = new Set(members.map(([name]) => name))
  return (
    required.every((name) => named.has(name)) &&
    members.every(([name, value]) => {
      const member = known.get(name) ?? additionalProperties
      return member !== undefined && fits(member, value)
    })
  )
}
