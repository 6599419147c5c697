import { isList, type Json } from '../json.ts'
import { maxDepth, tooDeep } from './limits.ts'

/** Mutable JSON. Objects are maps, so that no key is special. */
export type Draft = null | boolean | number | string | Draft[] | Map<string, Draft>

/** A deep copy. Throws a StatusError if it nests too deep. */
export function draftOf(value: Json, depth = maxDepth): Draft {
  if (typeof value !== 'object' || value === null) return value
  if (depth === 0) throw tooDeep()
  if (isList(value)) return value.map((item) => draftOf(item, depth - 1))
  return new Map(Object.entries(value).map(([key, member]) => [key, draftOf(member, depth - 1)]))
}

/** The JSON of the draft. Throws a StatusError if operations made it nest too deep. */
export function jsonOf(draft: Draft, depth = maxDepth): Json {
  if (typeof draft !== 'object' || draft === null) return draft
  if (depth === 0) throw tooDeep()
  if (Array.isArray(draft)) return draft.map((item) => jsonOf(item, depth - 1))
  return Object.fromEntries([...draft].map(([key, member]) => [key, jsonOf(member, depth - 1)]))
}

/** Whether both are equal; the order of members does not matter. */
export function sameDraft(a: Draft, b: Draft): boolean {
  if (a instanceof Map && b instanceof Map)
    return a.size === b.size && [...a].every(([key, value]) => sameMember(value, b.get(key)))
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((value, at) => sameMember(value, b[at]))
  return a === b
}

const sameMember = (value: Draft, other: Draft | undefined): boolean =>
  other !== undefined && sameDraft(value, other)
