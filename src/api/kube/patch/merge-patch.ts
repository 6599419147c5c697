import { isObject, type Json, type JsonObject } from '../json.ts'
import { badRequest, StatusError } from '../status.ts'
import { checkDepth } from './limits.ts'

/**
 * Applies an RFC 7386 merge patch: members are merged, null removes, lists and all else replace.
 * Throws a StatusError (400) for a patch that is no object or nests too deep.
 */
export function mergePatch(doc: JsonObject, patch: Json): JsonObject {
  if (!isObject(patch)) throw new StatusError(badRequest('error decoding patch: not an object'))
  checkDepth(patch)
  return merged(doc, patch)
}

function merged(target: Json | undefined, patch: JsonObject): JsonObject {
  const members = new Map<string, Json>(isObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name)
    else members.set(name, isObject(value) ? merged(members.get(name), value) : value)
  }
  return Object.fromEntries(members)
}
