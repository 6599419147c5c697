import { isList, isObject, type Json, type JsonObject } from './json.ts'

/** The value at `path`; `undefined` if there is none. */
export function valueAt(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  let here = value
  for (const step of path) {
    if (!isObject(here) || !Object.hasOwn(here, step)) return undefined
    here = here[step]
  }
  return here
}

/** The string at `path`; `undefined` if there is none. */
export function optionalTextAt(
  value: Json | undefined,
  ...path: readonly string[]
): string | undefined {
  const found = valueAt(value, ...path)
  return typeof found === 'string' ? found : undefined
}

/** The string at `path`; '' if there is none. */
export const textAt = (value: Json | undefined, ...path: readonly string[]): string =>
  optionalTextAt(value, ...path) ?? ''

/** The object at `path`; `undefined` if there is none. */
export function optionalObjectAt(
  value: Json | undefined,
  ...path: readonly string[]
): JsonObject | undefined {
  const found = valueAt(value, ...path)
  return isObject(found) ? found : undefined
}

/** The object at `path`; an empty one if there is none. */
export const objectAt = (value: Json | undefined, ...path: readonly string[]): JsonObject =>
  optionalObjectAt(value, ...path) ?? {}

/** The members that are texts of the object at `path`: labels, annotations, data. */
export const textsAt = (
  value: Json | undefined,
  ...path: readonly string[]
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(objectAt(value, ...path)).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  )

/** The list at `path`; an empty one if there is none. */
export function listAt(value: Json | undefined, ...path: readonly string[]): readonly Json[] {
  const found = valueAt(value, ...path)
  return isList(found) ? found : []
}

/** A copy with `member` at `path`; missing parents are created. `undefined` removes the member. */
export function withAt(
  object: JsonObject,
  [first = '', ...rest]: readonly string[],
  member: Json | undefined,
): JsonObject {
  if (rest.length === 0) return withMember(object, first, member)
  // A removal creates no parents.
  if (member === undefined && !isObject(valueAt(object, first))) return object
  return withMember(object, first, withAt(objectAt(object, first), rest, member))
}

function withMember(object: JsonObject, name: string, member: Json | undefined): JsonObject {
  if (member !== undefined) return { ...object, [name]: member }
  return Object.fromEntries(Object.entries(object).filter(([other]) => other !== name))
}

/** A value as people read it: text as it is, nothing for none. */
export function printed(value: Json | undefined): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}
