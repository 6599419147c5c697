import { isList, isObject, type Json, type JsonObject } from '../kube/json.ts'

/** What is at the end of a way through objects; `undefined` where it ends before. */
export function at(value: Json | undefined, ...way: readonly string[]): Json | undefined {
  let found = value
  for (const name of way) {
    if (!isObject(found) || !Object.hasOwn(found, name)) return undefined
    found = found[name]
  }
  return found
}

export function objectAt(
  value: Json | undefined,
  ...way: readonly string[]
): JsonObject | undefined {
  const found = at(value, ...way)
  return isObject(found) ? found : undefined
}

export function textAt(value: Json | undefined, ...way: readonly string[]): string | undefined {
  const found = at(value, ...way)
  return typeof found === 'string' ? found : undefined
}

/** The list there; an empty one where there is none. */
export function listAt(value: Json | undefined, ...way: readonly string[]): readonly Json[] {
  const found = at(value, ...way)
  return isList(found) ? found : []
}
