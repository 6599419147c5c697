import { isList, isObject, type Json, type JsonObject } from '../json.ts'
import { invalid, StatusError } from '../status.ts'
import { malformed, patchDirective, withoutDirectives } from './directives.ts'
import { identityOf, inOrder, positions } from './element-order.ts'

type MergeObject = (original: JsonObject, patch: JsonObject) => JsonObject

/**
 * Merges a list whose elements are identified by `key` ('' for plain values). Throws a StatusError
 * for mixed lists and lists of lists.
 */
export function mergeList(
  original: readonly Json[],
  patch: readonly Json[],
  key: string,
  mergeObject: MergeObject,
): readonly Json[] {
  const elements = kindOf([...original, ...patch])
  if (elements === 'none') return original
  if (elements === 'plain')
    return inOrder([...new Set([...original, ...patch])], patch, original, '')
  if (key === '') throw malformed('cannot merge lists without merge key')
  const { kept, additions } = special(original, patch as readonly JsonObject[], key)
  return inOrder(withAdditions(kept, additions, key, mergeObject), additions, kept, key)
}

function kindOf(items: readonly Json[]): 'none' | 'plain' | 'objects' {
  if (items.some(isList))
    throw new StatusError(
      invalid('the server rejected our request due to an error in our request', {}),
      { cause: new Error('lists of lists are not supported') },
    )
  if (items.length === 0) return 'none'
  const objects = items.filter(isObject).length
  if (objects > 0 && objects < items.length) throw malformed('list element types are not identical')
  return objects > 0 ? 'objects' : 'plain'
}

/**
 * Applies the directives among the elements of a patch: the elements to keep, and those to merge.
 */
function special(
  original: readonly Json[],
  patch: readonly JsonObject[],
  key: string,
): { kept: readonly Json[]; additions: readonly JsonObject[] } {
  const deleted = new Set<Json | undefined>()
  const additions: JsonObject[] = []
  let replaces = false
  for (const item of patch) {
    const directive = item[patchDirective]
    if (directive === undefined) additions.push(item)
    else if (directive === 'delete') deleted.add(keyed(item, key))
    else if (directive === 'replace') replaces = true
    else throw malformed(`unknown patch type: ${JSON.stringify(directive)}`)
  }
  const kept = original.filter((item) => !deleted.has(identityOf(item, key)))
  // As they are: elements that share a key stay (mergeSliceWithSpecialElements).
  return replaces ? { kept: additions, additions: [] } : { kept, additions }
}

function withAdditions(
  kept: readonly Json[],
  additions: readonly JsonObject[],
  key: string,
  mergeObject: MergeObject,
): readonly Json[] {
  const items = [...kept]
  const places = positions(items, key)
  for (const addition of additions) {
    const identity = keyed(addition, key)
    const place = places.get(identity)
    const found = place === undefined ? undefined : items[place]
    if (place !== undefined && isObject(found)) items[place] = mergeObject(found, addition)
    else {
      places.set(identity, items.length)
      items.push(withoutDirectives(addition) ?? {})
    }
  }
  for (const item of items) keyed(item, key)
  return items
}

function keyed(item: Json, key: string): Json {
  const identity = identityOf(item, key)
  if (identity === undefined) throw malformed(`map does not contain declared merge key: ${key}`)
  return identity
}
