import { isObject, type JsonObject } from '../../api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../api/kube/json-at.ts'
import { hasEnded, isPropagated } from '../../api/kube/pod.ts'
import { contextOf, type Context } from '../../node/lint/context.ts'
import type { ApiServer } from '../api/api-server.ts'
import { nodeFacts } from '../controller/node-facts.ts'
import { poolsPath } from '../pools.ts'

/** The controller that a pod, or its owner, names. */
export interface ControllerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** The facts about a pod that the plan needs: some hundred bytes of several thousand. */
export interface PodFacts {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly node: string
  readonly labels: JsonObject
  readonly controller: ControllerReference | undefined
  /** Whether it runs on the host's network although its spec does not request it. */
  readonly propagated: boolean
  readonly hostNetwork: boolean
  /** Succeeded or Failed: it shows how its successor will run. */
  readonly ended: boolean
}

export interface LabelledNode {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

/** The state from which the plan is made, read from the API server. */
export interface ClusterState {
  readonly nodes: readonly LabelledNode[]
  readonly pods: readonly PodFacts[]
  /** Pools and the Pod Security levels of namespaces. */
  readonly context: Context
}

/** Reads nodes, pools, namespaces and pods, page by page. Changes nothing. */
export async function readClusterState(api: ApiServer): Promise<ClusterState> {
  const described: JsonObject[] = []
  for await (const pool of api.list(poolsPath))
    described.push({ ...pool, apiVersion: 'apps.openyurt.io/v1beta2', kind: 'NodePool' })
  for await (const { metadata } of api.list('/api/v1/namespaces'))
    described.push({ kind: 'Namespace', ...(metadata !== undefined && { metadata }) })
  const nodes: LabelledNode[] = []
  for await (const node of api.list('/api/v1/nodes')) {
    const { name, labels } = nodeFacts(node)
    nodes.push({ name, labels })
  }
  const pods: PodFacts[] = []
  const scheduled = { fieldSelector: 'spec.nodeName!=' }
  for await (const pod of api.list('/api/v1/pods', scheduled)) pods.push(podFacts(pod))
  return { nodes, pods, context: contextOf(described) }
}

/** The facts about a pod. A member of an unexpected type counts as absent. */
function podFacts(pod: JsonObject): PodFacts {
  const labels = valueAt(pod, 'metadata', 'labels')
  return {
    namespace: textAt(pod, 'metadata', 'namespace'),
    name: textAt(pod, 'metadata', 'name'),
    uid: textAt(pod, 'metadata', 'uid'),
    node: textAt(pod, 'spec', 'nodeName'),
    labels: isObject(labels) ? labels : {},
    controller: controllerOf(pod),
    propagated: isPropagated(pod),
    hostNetwork: valueAt(pod, 'spec', 'hostNetwork') === true,
    ended: hasEnded(pod),
  }
}

/** The owner reference with `controller: true`, of which there is at most one. */
export function controllerOf(object: JsonObject): ControllerReference | undefined {
  const found = listAt(object, 'metadata', 'ownerReferences').find(
    (each) => valueAt(each, 'controller') === true,
  )
  if (found === undefined) return undefined
  return {
    apiVersion: textAt(found, 'apiVersion'),
    kind: textAt(found, 'kind'),
    name: textAt(found, 'name'),
    uid: textAt(found, 'uid'),
  }
}
