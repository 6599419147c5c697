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

/** The members of metadata that are not empty. */
export const withoutEmpty = (metadata: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(metadata).filter(
      ([, value]) => value !== null && value !== '' && !isEmpty(value),
    ),
  )

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
