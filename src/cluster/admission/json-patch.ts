import { isDeepStrictEqual } from 'node:util'
import { isObject, type Json } from '../../api/kube/json.ts'

/** One operation of a JSON Patch (RFC 6902); `add` replaces a member that is there. */
export type PatchOperation =
  | { readonly op: 'add'; readonly path: string; readonly value: Json }
  | { readonly op: 'remove'; readonly path: string }

/**
 * The operations that make `after` of `before`, and touch no member that is the same in both. Lists
 * are replaced whole.
 */
export function jsonPatchBetween(before: Json, after: Json, path = ''): PatchOperation[] {
  if (!isObject(before) || !isObject(after))
    return isDeepStrictEqual(before, after) ? [] : [{ op: 'add', path, value: after }]
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names.flatMap((name): PatchOperation[] => {
    const [was, is] = [before, after].map((each) =>
      Object.hasOwn(each, name) ? each[name] : undefined,
    )
    const place = `${path}/${escapeToken(name)}`
    if (was !== undefined && is !== undefined) return jsonPatchBetween(was, is, place)
    return [
      is === undefined ? { op: 'remove', path: place } : { op: 'add', path: place, value: is },
    ]
  })
}

/** A member's name as a token of a JSON pointer (RFC 6901). */
const escapeToken = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')
