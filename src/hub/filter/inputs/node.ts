import type { Json, JsonObject } from '../../../api/kube/json.ts'
import { objectAt } from '../../../api/kube/json-at.ts'
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
export const membersOf = (bytes: Uint8Array): JsonObject =>
  objectAt(JSON.parse(Buffer.from(bytes).toString()) as Json)

/** The string members of a member: labels, annotations, data. */
export function stringsIn(of: Json | undefined, name: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(objectAt(of, name)).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  )
}
