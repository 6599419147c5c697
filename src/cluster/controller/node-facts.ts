import { createHash } from 'node:crypto'
import { isList, isObject, type Json, type JsonObject } from '../../kube/json.ts'
import type { PoolTaint } from '../../kube/node-pool.ts'
import { previousAttributesAnnotation } from '../previous-attributes.ts'

/** What the controller keeps of a Node: images, conditions and addresses, most of the object, are not among it. */
export interface NodeFacts {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly labels: Readonly<Record<string, string>>
  /** As `keptText` keeps them. */
  readonly annotations: Readonly<Record<string, string>>
  readonly taints: readonly PoolTaint[]
  /** Whether the condition Ready is True. */
  readonly ready: boolean
  /** The pool that it was seen in before the one it is in; '' for none; absent where it was not seen to move. */
  readonly movedFrom?: string
}

/** Longer texts are kept as their digest: all that is asked is whether one is another. */
const longest = 1024

/** A text, or a digest of it that stands for no other text. */
export const keptText = (text: string): string =>
  text.length <= longest ? text : `sha256:${createHash('sha256').update(text).digest('hex')}`

/** Reads what is kept of a Node. What is not as the API would have it counts as absent. */
export function nodeFacts(node: JsonObject): NodeFacts {
  const metadata = objectAt(node, 'metadata')
  const annotations = textsAt(metadata, 'annotations')
  const taints = objectAt(node, 'spec')['taints']
  const conditions = objectAt(node, 'status')['conditions']
  return {
    name: textAt(metadata, 'name'),
    uid: textAt(metadata, 'uid'),
    resourceVersion: textAt(metadata, 'resourceVersion'),
    labels: textsAt(metadata, 'labels'),
    annotations: Object.fromEntries(
      Object.entries(annotations).map(([key, text]) => [
        key,
        key === previousAttributesAnnotation ? text : keptText(text),
      ]),
    ),
    taints: isList(taints) ? (taints.filter(isObject) as unknown as readonly PoolTaint[]) : [],
    ready:
      isList(conditions) &&
      conditions.some(
        (each) => isObject(each) && each['type'] === 'Ready' && each['status'] === 'True',
      ),
  }
}

function objectAt(value: JsonObject, name: string): JsonObject {
  const found = value[name]
  return isObject(found) ? found : {}
}

const textAt = (value: JsonObject, name: string): string => {
  const found = value[name]
  return typeof found === 'string' ? found : ''
}

const textsAt = (value: JsonObject, name: string): Record<string, string> =>
  Object.fromEntries(
    Object.entries(objectAt(value, name)).filter(
      (entry): entry is [string, Json & string] => typeof entry[1] === 'string',
    ),
  )
