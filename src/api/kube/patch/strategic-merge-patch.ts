import { isList, isObject, type Json, type JsonObject } from '../json.ts'
import {
  directivesOf,
  malformed,
  patchDirective,
  plainMembers,
  retained,
  withoutDirectives,
  type Directives,
} from './directives.ts'
import { inOrder } from './element-order.ts'
import { checkDepth } from './limits.ts'
import { mergeList } from './merge-list.ts'
import type { MergeField, MergeSchema } from './merge-schema.ts'

/**
 * Applies a strategic merge patch as the API server does: like a merge patch, but for the lists of
 * `schema`, which are merged element by element, and for directives. Throws a StatusError: 400 for
 * a malformed patch, 422 for lists of lists.
 */
export function strategicMergePatch(schema: MergeSchema, doc: JsonObject, patch: Json): JsonObject {
  if (!isObject(patch)) throw malformed('error decoding patch: not an object')
  checkDepth(patch)
  return mergeObject(schema, doc, patch)
}

function mergeObject(schema: MergeSchema, original: JsonObject, patch: JsonObject): JsonObject {
  const directive = patch[patchDirective]
  if (directive === 'replace') return plainMembers(patch)
  if (directive === 'delete') return {}
  if (directive !== undefined) throw malformed(`unknown patch type: ${JSON.stringify(directive)}`)

  const directives = directivesOf(patch)
  const members = new Map<string, Json>(Object.entries(original))
  retained(members, directives)
  for (const [name, value] of directives.members) {
    const merged = mergeMember(fieldOf(schema, name), members.get(name), value)
    if (merged === undefined) members.delete(name)
    else members.set(name, merged)
  }
  order(schema, members, original, directives)
  deletePlainValues(members, directives)
  return Object.fromEntries(members)
}

const fieldOf = (schema: MergeSchema, name: string): MergeField =>
  (Object.hasOwn(schema, name) ? schema[name] : undefined) ?? {}

function mergeMember(field: MergeField, original: Json | undefined, patch: Json): Json | undefined {
  if (patch === null) return undefined
  if (isObject(original) && isObject(patch))
    return mergeObject(field.members ?? {}, original, patch)
  if (isList(original) && isList(patch)) return mergeLists(field, original, patch)
  return withoutDirectives(patch)
}

function mergeLists(
  field: MergeField,
  original: readonly Json[],
  patch: readonly Json[],
): readonly Json[] {
  if (field.key === undefined) return patch.flatMap((item) => withoutDirectives(item) ?? [])
  return mergeList(original, patch, field.key, (element, change) =>
    mergeObject(field.members ?? {}, element, change),
  )
}

/** An order may be requested without a change to the list. */
function order(
  schema: MergeSchema,
  members: Map<string, Json>,
  original: JsonObject,
  { orders }: Directives,
): void {
  for (const [name, wanted] of orders) {
    const list = members.get(name)
    if (list === undefined) continue
    if (!isList(list)) throw malformed('invalid patch format of setElementOrder list')
    const before = original[name]
    const key = fieldOf(schema, name).key ?? ''
    members.set(name, inOrder(list, wanted, isList(before) ? before : [], key))
  }
}

function deletePlainValues(members: Map<string, Json>, { deletions }: Directives): void {
  for (const [name, deleted] of deletions) {
    const list = members.get(name)
    const gone = new Set(deleted)
    if (isList(list))
      members.set(
        name,
        list.filter((value) => !gone.has(value)),
      )
  }
}
