import { hostNetworkLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
import { isList } from '../../api/kube/json.ts'
import { optionalObjectAt, optionalTextAt, valueAt } from '../../api/kube/json-at.ts'
import { hasEnded, isPropagated } from '../../api/kube/pod.ts'
import { messageOf } from '../../config/settings.ts'
import type { ApiResponse } from '../../http/client/api-call.ts'
import type { ApiServer } from './api-server.ts'

/** The API server to which the requests go. */
export type ApiClient = Pick<ApiServer, 'address' | 'ask'>

/** Why a request failed or was refused, as a sentence for operators. */
export interface LookupFailure {
  readonly failure: string
}

/** `isMissing`: the API server knows NodePools, and none of this name. */
interface UnknownPool extends LookupFailure {
  readonly isMissing?: true
}

/** Whether a NodePool is a host-network pool, according to the cluster. */
export async function kindOfPool(
  api: ApiClient,
  name: string,
): Promise<{ readonly hostNetwork: boolean } | UnknownPool> {
  // The versions that have the field; OpenYurt before 1.6 has the second alone.
  for (const version of ['v1beta2', 'v1beta1']) {
    const path = `/apis/apps.openyurt.io/${version}/nodepools/${name}`
    const answered = await answerOf(api, 'GET', path)
    if ('failure' in answered) return answered
    const { status, body } = answered
    if (status === 200 && (optionalObjectAt(body, 'metadata') ?? optionalObjectAt(body, 'spec'))) {
      return { hostNetwork: optionalObjectAt(body, 'spec')?.['hostNetwork'] === true }
    }
    if (status !== 404) return { failure: refusalOf(api, answered) }
    if (optionalObjectAt(body, 'details')?.['name'] === name) {
      return { failure: `there is no NodePool ${name} at ${api.address}`, isMissing: true }
    }
  }
  return { failure: `${api.address} knows no NodePools` }
}

/** The pool of a node, according to the cluster. */
export interface NodeMembership {
  /**
   * Whether there is a Node object. A kubelet gives its labels only to one that it makes itself.
   */
  readonly registered: boolean
  readonly nodePool?: string
  readonly hostNetwork: boolean
}

export async function membershipOf(
  api: ApiClient,
  node: string,
): Promise<NodeMembership | LookupFailure> {
  const answered = await answerOf(api, 'GET', `/api/v1/nodes/${node}`)
  if ('failure' in answered) return answered
  if (answered.status === 404) return { registered: false, hostNetwork: false }
  const metadata = optionalObjectAt(answered.body, 'metadata')
  if (answered.status !== 200 || metadata === undefined) {
    return { failure: refusalOf(api, answered) }
  }
  const labels = optionalObjectAt(metadata, 'labels') ?? {}
  const pool = labels[nodePoolLabel]
  return {
    registered: true,
    ...(typeof pool === 'string' && { nodePool: pool }),
    hostNetwork: labels[hostNetworkLabel] === 'true',
  }
}

/**
 * Labels a Node that is there already with its pool, as its kubelet may (NodeRestriction keeps
 * kubelets from labels of kubernetes.io alone). The label of host-network pools follows by
 * admission, or by the controller once no pod on a pod network runs there.
 */
export async function labelNode(
  api: ApiClient,
  node: string,
  nodePool: string,
): Promise<LookupFailure | undefined> {
  const patch = { metadata: { labels: { [nodePoolLabel]: nodePool } } }
  const answered = await answerOf(api, 'PATCH', `/api/v1/nodes/${node}`, patch)
  if ('failure' in answered) return answered
  return answered.status === 200 ? undefined : { failure: refusalOf(api, answered) }
}

/**
 * Pods of the node that run on its network although the API has them on the pod network: the hub's
 * legacy filter changed them. Without the hub the kubelet sees the original, and makes their
 * sandboxes again.
 */
export async function propagatedPods(
  api: ApiClient,
  node: string,
): Promise<readonly string[] | LookupFailure> {
  const answered = await answerOf(api, 'GET', `/api/v1/pods?fieldSelector=spec.nodeName%3D${node}`)
  if ('failure' in answered) return answered
  const items = valueAt(answered.body, 'items')
  // An answer that is no list of pods, whatever server gave it, does not prove that there are none.
  if (answered.status !== 200 || !isList(items)) return { failure: refusalOf(api, answered) }
  const propagated = items.filter((pod) => isPropagated(pod) && !hasEnded(pod))
  return propagated.map((pod) => {
    const { namespace, name } = optionalObjectAt(pod, 'metadata') ?? {}
    return `${String(namespace as string)}/${String(name as string)}`
  })
}

async function answerOf(
  api: ApiClient,
  method: string,
  path: string,
  patch?: object,
): Promise<ApiResponse | LookupFailure> {
  try {
    return await api.ask(method, path, patch)
  } catch (cause) {
    return { failure: `${api.address} did not answer: ${messageOf(cause)}` }
  }
}

function refusalOf(api: ApiClient, { status, body }: ApiResponse): string {
  if (status === 200) return `${api.address} answered with something else`
  const message = optionalTextAt(body, 'message')
  return `${api.address} answered ${status}${message === undefined ? '' : `: ${message}`}`
}
