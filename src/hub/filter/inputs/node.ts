import type { Json, JsonObject } from '../../../api/kube/json.ts'
import { objectAt, textsAt } from '../../../api/kube/json-at.ts'
import type { NodeFacts } from '../inputs.ts'

/** The facts of a Node from its JSON; metadata is enough. */
export function nodeFactsOf(name: string, bytes: Uint8Array): NodeFacts {
  const { metadata } = membersOf(bytes)
  return {
    name,
    labels: textsAt(metadata, 'labels'),
    annotations: textsAt(metadata, 'annotations'),
  }
}

/** The members of a JSON object. Throws a `SyntaxError`. */
export const membersOf = (bytes: Uint8Array): JsonObject =>
  objectAt(JSON.parse(Buffer.from(bytes).toString()) as Json)
