import { valueAt, textAt } from '../../api/kube/json-at.ts'
import { hasEnded } from '../../api/kube/pod.ts'
import type { ApiServer } from '../api/api-server.ts'

/** Enough for a message. */
const most = 50

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
    // Without the CNI any other would lose its address.
    if (valueAt(pod, 'spec', 'hostNetwork') === true || hasEnded(pod)) continue
    found.push(`${textAt(pod, 'metadata', 'namespace')}/${textAt(pod, 'metadata', 'name')}`)
    if (found.length === most) break
  }
  return found
}
