/** What `JSON.parse` returns. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

/** A JSON object. Members are never assigned: an edited object is a new one. */
export interface JsonObject {
  readonly [name: string]: Json
}

/** The value of a JSON text; `undefined` where it is not JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** Whether `value` is an object, not a list or null. */
export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether `value` is a list; unlike `Array.isArray` it keeps the type of the elements. */
export const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)
