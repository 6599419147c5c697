import { isList, isObject, type Json } from '../../api/kube/json.ts'

/** One operation of a JSON Patch (RFC 6902). */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: Json }
  | { readonly op: 'remove'; readonly path: string }

/** The operations that make `after` of `before`, and touch nothing that is the same in both. */
export function jsonPatchBetween(before: Json, after: Json, path = ''): PatchOperation[] {
  if (before === after) return []
  if (isObject(before) && isObject(after)) {
    const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name))
    return [
      ...gone.map((name): PatchOperation => ({
        op: 'remove',
        path: `${path}/${escapeToken(name)}`,
      })),
      ...Object.entries(after).flatMap(([name, value]) => {
        const place = `${path}/${escapeToken(name)}`
        const was = Object.hasOwn(before, name) ? before[name] : undefined
        return was === undefined
          ? [{ op: 'add', path: place, value } as const]
          : jsonPatchBetween(was, value, place)
      }),
    ]
  }
  if (isList(before) && isList(after) && before.length <= after.length) {
    return after.flatMap((value, index): PatchOperation[] => {
      const was = before[index]
      return was === undefined
        ? [{ op: 'add', path: `${path}/-`, value }]
        : jsonPatchBetween(was, value, `${path}/${index}`)
    })
  }
  return [{ op: 'replace', path, value: after }]
}

/** A member's name as a token of a JSON pointer (RFC 6901). */
const escapeToken = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')
