import type { JsonObject } from '../../api/kube/json.ts'
import { valueAt, textAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'

/** Enough for a message. */
const most = 50

/**
 * Whether a pod has not ended and is on the pod network: without the CNI it would lose its address.
 */
const onPodNetwork = (pod: JsonObject): boolean =>
  valueAt(pod, 'spec', 'hostNetwork') !== true &&
  !['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'))

/**
 * Up to fifty pods of a node, `namespace/name`, that are on the pod network and have not ended.
 * Read from the API server when needed: an informer of all pods of a large cluster, for a few
 * nodes, would cost more than everything else.
 */
export async function podNetworkPods(
  api: ApiServer,
  nodeName: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found: string[] = []
  const selector = { fieldSelector: `spec.nodeName=${nodeName}` }
  for await (const pod of api.list('/api/v1/pods', selector, signal)) {
    if (!onPodNetwork(pod)) continue
    found.push(`${textAt(pod, 'metadata', 'namespace')}/${textAt(pod, 'metadata', 'name')}`)
    if (found.length === most) break
  }
  return found
}
