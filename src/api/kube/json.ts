/** What `JSON.parse` returns. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

/** A JSON object whose members are not written to: an edited object is a new one. */
export interface JsonObject {
  readonly [name: string]: Json
}

/** Whether `value` is an object, and neither a list nor null. */
export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether `value` is a list; unlike `Array.isArray` it keeps what is known of the elements. */
export const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)
