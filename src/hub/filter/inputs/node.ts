import { isObject, type Json } from '../../../api/kube/json.ts'
import type { NodeFacts } from '../inputs.ts'

/** The facts of a Node from its JSON; metadata is enough. */
export function nodeFactsOf(name: string, bytes: Uint8Array): NodeFacts {
  const { metadata } = membersOf(bytes)
  return {
    name,
    labels: stringsIn(metadata, 'labels'),
    annotations: stringsIn(metadata, 'annotations'),
  }
}

/** The members of a JSON object. Throws a `SyntaxError`. */
export function membersOf(bytes: Uint8Array): Readonly<Record<string, Json>> {
  const value = JSON.parse(Buffer.from(bytes).toString()) as Json
  return isObject(value) ? value : {}
}

/** The string members of a member: labels, annotations, data. */
export function stringsIn(of: Json | undefined, name: string): Readonly<Record<string, string>> {
  const members = isObject(of) ? of[name] : undefined
  if (!isObject(members)) return {}
  return Object.fromEntries(
    Object.entries(members).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  )
}
