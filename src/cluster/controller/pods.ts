import type { Json } from '../../api/kube/json.ts'
import { valueAt, listAt, textAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'

/** Enough to say that there are some. */
const most = 50

/**
 * Whether a pod has not ended and has a network of its own: what the CNI gave it would be gone with
 * the CNI.
 */
const onPodNetwork = (pod: Json): boolean =>
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
  let next = ''
  do {
    const query = new URLSearchParams({
      fieldSelector: `spec.nodeName=${nodeName}`,
      limit: '250',
      ...(next !== '' && { continue: next }),
    })
    const list = (await api.get(`/api/v1/pods?${query}`, signal)) ?? {}
    for (const pod of listAt(list, 'items')) {
      if (onPodNetwork(pod))
        found.push(`${textAt(pod, 'metadata', 'namespace')}/${textAt(pod, 'metadata', 'name')}`)
    }
    next = textAt(list, 'metadata', 'continue')
  } while (next !== '' && found.length < most)
  return found.slice(0, most)
}
