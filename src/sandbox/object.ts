import { isObject, type Json, type JsonObject } from '../api/kube/json.ts'

/** Any API object, as JSON. Never written to: an edited object is a new one. */
export interface KubeObject extends JsonObject {
  readonly kind: string
  readonly apiVersion: string
  readonly metadata: Metadata
}

export interface Metadata extends JsonObject {
  readonly name: string
  readonly namespace?: string
  readonly uid: string
  readonly resourceVersion: string
  readonly creationTimestamp: string
}

/** The order in which the server writes metadata (apimachinery pkg/apis/meta/v1/types.go). */
const metadataOrder = [
  'name',
  'generateName',
  'namespace',
  'selfLink',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
]

/** Metadata in the server's order, without empty members. */
export function orderedMetadata(metadata: JsonObject): JsonObject {
  const ordered: Record<string, Json> = {}
  for (const name of metadataOrder) {
    const value = metadata[name]
    if (value !== undefined && value !== null && value !== '' && !isEmpty(value)) {
      ordered[name] = value
    }
  }
  return ordered
}

const isEmpty = (value: Json): boolean =>
  Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0

/** Sorts the members of every object by name, as custom resources are written. */
export function sortedDeep(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortedDeep)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((name) => [name, sortedDeep(value[name] ?? null)]),
  )
}

/** Seconds since the epoch as the server writes times. */
export const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

/** The members of an object besides `kind` and `apiVersion`. */
export function withoutType(object: JsonObject): JsonObject {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object
  return rest
}
