import { isObject, type Json } from '../../../api/kube/json.ts'
import type { NodeFacts } from '../inputs.ts'

/** What filters know of a Node, from its JSON; metadata is enough. */
export function nodeFactsOf(name: string, bytes: Uint8Array): NodeFacts {
  const { metadata } = membersOf(bytes)
  return {
    name,
    labels: textsIn(metadata, 'labels'),
    annotations: textsIn(metadata, 'annotations'),
  }
}

/** The members of an object, from its JSON. Throws a `SyntaxError`. */
export function membersOf(bytes: Uint8Array): Readonly<Record<string, Json>> {
  const value = JSON.parse(Buffer.from(bytes).toString()) as Json
  return isObject(value) ? value : {}
}

/** The members of a member that are texts: labels, annotations, data. */
export function textsIn(of: Json | undefined, name: string): Readonly<Record<string, string>> {
  const members = isObject(of) ? of[name] : undefined
  if (!isObject(members)) return {}
  return Object.fromEntries(
    Object.entries(members).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  )
}
