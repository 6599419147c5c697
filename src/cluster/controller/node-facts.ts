import { isIP } from 'node:net'
import { canonical } from '../../base/listening-sockets.ts'
import { isObject, type JsonObject } from '../../api/kube/json.ts'
import { isConditionTrue } from '../../api/kube/conditions.ts'
import { listAt, textAt, textsAt } from '../../api/kube/json-at.ts'
import type { PoolTaint } from '../../api/kube/node-pool.ts'

/** The stored facts of a Node: without images and conditions, which are most of the object. */
export interface NodeFacts {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly taints: readonly PoolTaint[]
  /** IP addresses, in their canonical form. */
  readonly addresses: readonly string[]
  /** Whether the condition Ready is True. */
  readonly ready: boolean
}

/** Reads the facts of a Node. A member of an unexpected type counts as absent. */
export function nodeFacts(node: JsonObject): NodeFacts {
  return {
    name: textAt(node, 'metadata', 'name'),
    uid: textAt(node, 'metadata', 'uid'),
    resourceVersion: textAt(node, 'metadata', 'resourceVersion'),
    labels: textsAt(node, 'metadata', 'labels'),
    annotations: textsAt(node, 'metadata', 'annotations'),
    taints: listAt(node, 'spec', 'taints').filter(isObject) as unknown as readonly PoolTaint[],
    addresses: listAt(node, 'status', 'addresses')
      .map((each) => textAt(each, 'address'))
      .filter((address) => isIP(address) > 0)
      .map(canonical),
    ready: isConditionTrue(node, 'Ready'),
  }
}
