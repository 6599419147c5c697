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
 * On a NodePool of v1alpha1, and of v1beta1 without the field: states that the pool has a host
 * network (openyurt pkg/apis/apps, conversions).
 */
const hostNetworkAnnotation = hostNetworkLabel

const sections = ['spec', 'status'] as const

type Section = (typeof sections)[number]

type Sections = Readonly<Record<Section, JsonObject>>

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
 * A pool in another version, `apps.openyurt.io/<to>`. No field is lost either way: fields that `to`
 * lacks are carried in an annotation, and become fields again in a version that has them. Where a
 * field and the annotation both have a value, the field wins: it was written last. Throws an Error
 * for an object that is no pool.
 */
export function convertedPool(pool: JsonObject, to: PoolVersion): JsonObject {
  const from = versionOf(pool)
  if (from === to) return pool
  const merged = mergedSections(pool, from)
  const carried: Record<string, Json> = {}
  let converted: JsonObject = { ...pool, apiVersion: `apps.openyurt.io/${to}` }
  for (const section of sections) {
    const [own, others] = partition(merged[section], (name) => belongsTo(to, section, name))
    if (valueAt(pool, section) !== undefined || Object.keys(own).length > 0)
      converted = withAt(converted, [section], own)
    if (Object.keys(others).length > 0) carried[section] = others
  }
  const inAnnotation = to === 'v1alpha1' && merged.spec['hostNetwork'] === true
  return withAnnotations(converted, {
    [hostNetworkAnnotation]: inAnnotation ? 'true' : undefined,
    [carriedAnnotation]: Object.keys(carried).length > 0 ? JSON.stringify(carried) : undefined,
  })
}

/** The version of a pool. Throws an Error for an object that is no pool. */
function versionOf(pool: JsonObject): PoolVersion {
  const apiVersion = textAt(pool, 'apiVersion')
  const version = versionNamed(apiVersion)
  if (version === undefined || textAt(pool, 'kind') !== 'NodePool')
    throw new Error(`${apiVersion} ${textAt(pool, 'kind')} is no version of NodePool there is`)
  return version
}

/** The fields of all versions that a pool has, in its own version and carried. */
function mergedSections(pool: JsonObject, version: PoolVersion): Sections {
  const text = textAt(pool, 'metadata', 'annotations', carriedAnnotation)
  // Any client may have written the annotation.
  const carried = parseJson(text)
  const [spec, status] = sections.map((section) => ({
    ...validFields(objectAt(carried, section), section, version),
    ...objectAt(pool, section),
  })) as [JsonObject, JsonObject]
  const said = textAt(pool, 'metadata', 'annotations', hostNetworkAnnotation)
  const saysTrue = said.toLowerCase() === 'true'
  const counts =
    version === 'v1alpha1'
      ? saysTrue !== (spec['hostNetwork'] === true)
      : version === 'v1beta1' && !isObject(carried) && !('hostNetwork' in spec) && saysTrue
  return {
    spec: counts ? withAt(spec, ['hostNetwork'], saysTrue || undefined) : spec,
    // A pool without a status is new: a carried status comes from the pool that it was exported
    // from.
    status: isObject(valueAt(pool, 'status')) ? status : {},
  }
}

const has = (version: PoolVersion, section: Section, name: string): boolean =>
  Object.hasOwn(fieldsOf[version][section], name)

/** Unknown fields stay where they are: the API server prunes them. */
const belongsTo = (version: PoolVersion, section: Section, name: string): boolean =>
  has(version, section, name) || !poolVersions.some((other) => has(other, section, name))

/** The members whose names are meant, and the others. */
function partition(
  fields: JsonObject,
  isMeant: (name: string) => boolean,
): readonly [JsonObject, JsonObject] {
  const only = (meant: boolean): JsonObject =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => isMeant(name) === meant))
  return [only(true), only(false)]
}

/**
 * Only fields that `version` lacks, with values that are valid in the version that has them: the
 * API server does not check them.
 */
const validFields = (fields: JsonObject, section: Section, version: PoolVersion): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => {
      const owner = poolVersions.find((other) => has(other, section, name))
      const schema = owner && fieldsOf[owner][section][name]
      return schema && !has(version, section, name) && fits(schema, value)
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
  const { type, items, properties = {}, additionalProperties, required = [] } = schema
  switch (type) {
    case 'integer':
      return Number.isInteger(value) && Math.abs(value as number) < 2 ** 31
    case 'array':
      return isList(value) && value.every((item) => !items || fits(items, item))
    case 'object':
      return (
        isObject(value) &&
        required.every((name) => Object.hasOwn(value, name)) &&
        Object.entries(value).every(([name, member]) => {
          const known = Object.hasOwn(properties, name) ? properties[name] : additionalProperties
          return known !== undefined && fits(known, member)
        })
      )
    default: {
      const isWord = schema.enum?.includes(value as string) ?? true
      const isTime = schema.format !== 'date-time' || !Number.isNaN(Date.parse(value as string))
      return typeof value === type && isWord && isTime
    }
  }
}
