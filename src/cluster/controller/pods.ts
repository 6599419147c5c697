import type { JsonObject } from '../../api/kube/json.ts'
import { valueAt, textAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'

/** Enough to say that there are some. */
const most = 50

/**
 * Whether a pod has not ended and has a network of its own: what the CNI gave it would be gone with
 * the CNI.
 */
const onPodNetwork = (pod: JsonObject): boolean =>
  valueAt(pod, 'spec', 'hostNetwork') !== true &&
  !['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'))

/**
 * Pods of a node, `namespace/name`, that are on the pod network and have not ended; up to fifty of
 * them. Asked of the API server when it is needed: to follow all pods of a large cluster for the
 * few nodes in question would cost more than all else.
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
