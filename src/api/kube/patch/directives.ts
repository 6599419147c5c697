import { isList, isObject, type Json, type JsonObject } from '../json.ts'
import { badRequest, StatusError } from '../status.ts'

// Directives of a strategic merge patch (apimachinery pkg/util/strategicpatch).
export const patchDirective = '$patch'
const retainKeys = '$retainKeys'
const elementOrder = '$setElementOrder/'
const primitiveDeletion = '$deleteFromPrimitiveList/'

/** A patch of one object, parsed. */
export interface Directives {
  readonly retain?: readonly Json[]
  /** By the member to order. */
  readonly orders: ReadonlyMap<string, readonly Json[]>
  /** By the member to delete from. */
  readonly deletions: ReadonlyMap<string, readonly Json[]>
  /** The members without directives. */
  readonly members: ReadonlyMap<string, Json>
}

export const malformed = (message: string): StatusError => new StatusError(badRequest(message))

/** Throws a StatusError for directives that are not lists. */
export function directivesOf(patch: JsonObject): Directives {
  const orders = new Map<string, readonly Json[]>()
  const deletions = new Map<string, readonly Json[]>()
  const members = new Map<string, Json>()
  let retain: readonly Json[] | undefined
  for (const [name, value] of Object.entries(patch)) {
    if (name === retainKeys) retain = asList(value, 'retainKeys')
    else if (name.startsWith(elementOrder))
      orders.set(name.slice(elementOrder.length), asList(value, 'setElementOrder list'))
    else if (name.startsWith(primitiveDeletion))
      deletions.set(name.slice(primitiveDeletion.length), asList(value, 'primitive list'))
    else members.set(name, value)
  }
  return { ...(retain && { retain }), orders, deletions, members }
}

function asList(value: Json, what: string): readonly Json[] {
  if (!isList(value)) throw malformed(`invalid patch format of ${what}`)
  return value
}

/** Removes the members that the patch does not retain. */
export function retained(members: Map<string, Json>, { retain }: Directives): void {
  if (!retain) return
  const kept = new Set(retain)
  for (const name of members.keys()) if (!kept.has(name)) members.delete(name)
}

/**
 * A part of a patch without a counterpart to merge with: without nulls and directives; `undefined`
 * if it is itself a directive.
 */
export function withoutDirectives(value: Json): Json | undefined {
  if (isList(value)) return value.flatMap((item) => withoutDirectives(item) ?? [])
  if (!isObject(value)) return value
  if (Object.hasOwn(value, patchDirective)) return undefined
  return plainMembers(value)
}

/** The members of an object that the patch creates. */
export function plainMembers(patch: JsonObject): JsonObject {
  const kept: [string, Json][] = []
  for (const [name, value] of directivesOf(patch).members) {
    const plain = value === null || name === patchDirective ? undefined : withoutDirectives(value)
    if (plain !== undefined) kept.push([name, plain])
  }
  return Object.fromEntries(kept)
}
