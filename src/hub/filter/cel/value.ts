import { isList, isObject, type Json, type JsonObject } from '../../../api/kube/json.ts'

/**
 * A value of an expression: integers are bigints, other numbers are numbers; lists and maps are
 * those of JSON, or made by the expression.
 */
export type Value =
  | string
  | bigint
  | number
  | boolean
  | null
  | readonly Json[]
  | JsonObject
  | MadeList
  | MadeMap
  | Failure

/** A list that an expression has made. */
export class MadeList {
  readonly items: readonly Value[]

  constructor(items: readonly Value[]) {
    this.items = items
  }
}

/** A map that an expression has made. */
export class MadeMap {
  readonly entries: ReadonlyMap<Value, Value>

  constructor(entries: ReadonlyMap<Value, Value>) {
    this.entries = entries
  }
}

/**
 * The reason for a missing value. It is a value itself, since `false && failure` is false, as in
 * CEL.
 */
export class Failure {
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
  }
}

/** A list of either kind. */
export interface List {
  readonly length: number
  at(index: number): Value
}

/** A JSON value as an expression sees it: numbers without a fraction are integers. */
export const fromJson = (json: Json | undefined): Value | undefined =>
  typeof json === 'number' && Number.isSafeInteger(json) ? BigInt(json) : (json ?? undefined)

export function listOf(value: Value): List | undefined {
  if (value instanceof MadeList)
    return { length: value.items.length, at: (index) => value.items[index] ?? null }
  if (!Array.isArray(value)) return undefined
  const items = value as readonly Json[]
  return { length: items.length, at: (index) => fromJson(items[index]) ?? null }
}

export const isMap = (value: Value): boolean => value instanceof MadeMap || isJsonObject(value)

/** The keys of a map; `undefined` where the value is none. */
export function keysOf(value: Value): readonly Value[] | undefined {
  if (value instanceof MadeMap) return [...value.entries.keys()]
  return isJsonObject(value) ? Object.keys(value).filter((key) => isThere(value[key])) : undefined
}

/**
 * A map's value for a key; `undefined` where it has none, or a failure where the value is no map.
 * Null and empty lists count as absent.
 */
export function memberOf(value: Value, key: Value): Value | undefined {
  if (value instanceof Failure) return value
  if (value instanceof MadeMap) return value.entries.get(key)
  if (!isJsonObject(value)) return new Failure(`no such key: ${shownKey(key)} of ${typeOf(value)}`)
  if (typeof key !== 'string' || !Object.hasOwn(value, key)) return undefined
  const member = value[key]
  return isThere(member) ? fromJson(member) : undefined
}

/** A key for an error message. */
export const shownKey = (key: Value): string =>
  typeof key === 'object' ? typeOf(key) : String(key).slice(0, 100)

/** As in protobuf, an empty list is absent. */
const isThere = (json: Json | undefined): boolean =>
  json !== undefined && json !== null && !(isList(json) && json.length === 0)

const isJsonObject = (value: Value): value is JsonObject =>
  !(value instanceof MadeList || value instanceof MadeMap || value instanceof Failure) &&
  typeof value !== 'bigint' &&
  isObject(value)

export const isNumber = (value: Value): value is bigint | number =>
  typeof value === 'bigint' || typeof value === 'number'

/** The CEL name of a value's type. */
export function typeOf(value: Value): string {
  if (value === null) return 'null'
  if (value instanceof Failure) return 'failure'
  if (listOf(value)) return 'list'
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'bigint':
      return 'int'
    case 'number':
      return 'double'
    case 'boolean':
      return 'bool'
    default:
      return 'map'
  }
}
