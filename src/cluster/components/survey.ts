import type { JsonObject } from '../../api/kube/json.ts'
import { valueAt, textAt } from '../../api/kube/json-at.ts'
import { hostNetworkLabel, nodePoolLabel, type NodePool } from '../../api/kube/node-pool.ts'
import { hasEnded, isExcluded, isMirror } from '../../api/kube/pod.ts'
import type { ApiServer } from '../api/api-server.ts'
import { nodeFacts } from '../controller/node-facts.ts'
import { podNetworkPods } from '../controller/pods.ts'
import { reconcileNode } from '../controller/reconcile.ts'
import { poolsPath } from '../pools.ts'
import { componentOf, type Component, type WorkloadKind } from './component.ts'

/** A pod of the API, by where it is. */
export interface ScheduledPod {
  readonly namespace: string
  readonly name: string
  readonly node: string
}

/** A node that is not yet, or not wholly, as its pool wants it. */
export interface NodeFinding {
  readonly node: string
  readonly remark: string
}

export interface Survey {
  /** All that were found, whether or not anything is wrong with them. */
  readonly components: readonly Component[]
  /** Pods with the exclude annotation on host-network nodes. */
  readonly slippedIn: readonly ScheduledPod[]
  readonly nodes: readonly NodeFinding[]
}

/** Reads components, nodes of pools and excluded pods. Changes nothing. */
export async function survey(api: ApiServer): Promise<Survey> {
  const components: Component[] = []
  for (const kind of ['DaemonSet', 'Deployment'] as const satisfies readonly WorkloadKind[]) {
    for await (const workload of api.list(`/apis/apps/v1/${kind.toLowerCase()}s`)) {
      const found = componentOf(kind, workload)
      if (found) components.push(found)
    }
  }
  const pools = new Map<string, NodePool>()
  for await (const pool of api.list(poolsPath))
    pools.set(textAt(pool, 'metadata', 'name'), pool as unknown as NodePool)
  const onHostNetwork = new Set<string>()
  const nodes: NodeFinding[] = []
  for await (const node of api.list('/api/v1/nodes')) {
    const name = textAt(node, 'metadata', 'name')
    if (valueAt(node, 'metadata', 'labels', hostNetworkLabel) === 'true') onHostNetwork.add(name)
    const remarks = await remarksOn(api, node, pools)
    nodes.push(...remarks.map((remark) => ({ node: name, remark })))
  }
  return { components, nodes, slippedIn: await excludedOn(api, onHostNetwork) }
}

/** The warnings of the controller about a node. */
async function remarksOn(
  api: ApiServer,
  node: JsonObject,
  pools: ReadonlyMap<string, NodePool>,
): Promise<readonly string[]> {
  const facts = nodeFacts(node)
  const poolName = facts.labels[nodePoolLabel]
  if (poolName === undefined) return []
  const pool = pools.get(poolName)
  if (pool === undefined) return [`there is no NodePool ${poolName}`]
  let outcome = reconcileNode(facts, pool, undefined)
  if (outcome.awaits === 'pods')
    outcome = reconcileNode(
      facts,
      pool,
      await podNetworkPods(api, facts.name, new AbortController().signal),
    )
  return outcome.events.filter(({ type }) => type === 'Warning').map(({ message }) => message)
}

async function excludedOn(
  api: ApiServer,
  onHostNetwork: ReadonlySet<string>,
): Promise<readonly ScheduledPod[]> {
  const found: ScheduledPod[] = []
  if (onHostNetwork.size === 0) return found
  for await (const pod of api.list('/api/v1/pods', { fieldSelector: 'spec.nodeName!=' })) {
    const node = textAt(pod, 'spec', 'nodeName')
    if (!onHostNetwork.has(node) || hasEnded(pod) || !isExcluded(pod) || isMirror(pod)) continue
    found.push({
      namespace: textAt(pod, 'metadata', 'namespace'),
      name: textAt(pod, 'metadata', 'name'),
      node,
    })
  }
  return found
}
