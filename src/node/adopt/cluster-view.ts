import { isConditionTrue } from '../../api/kube/conditions.ts'
import { textAt } from '../../api/kube/json-at.ts'
import type { Credentials } from '../../config/credentials.ts'
import { anyApiCall } from '../../http/client/api-call.ts'
import type { ApiClient } from '../join/pool-membership.ts'

const patienceMs = 5000

/** The hub's API servers, reached without the hub: the first one that gives an answer. */
export function clusterView(servers: readonly URL[], credentials: Credentials): ApiClient {
  const call = anyApiCall(servers, credentials, { patienceMs })
  const address = servers.map(({ origin }) => origin).join(',')
  return { address, ask: (method, path) => call({ method, path }) }
}

/** Whether the Node is Ready. Rejects where that is not known, with the reason. */
export async function isNodeReady(api: ApiClient, node: string): Promise<boolean> {
  const { status, body } = await api.ask('GET', `/api/v1/nodes/${node}`)
  if (status !== 200) throw new Error(`${api.address} answered ${status} for node ${node}`)
  return isConditionTrue(body, 'Ready')
}

/**
 * The version of the Node's lease, which is another one after each renewal; '' where there is none
 * yet.
 */
export async function leaseVersion(api: ApiClient, node: string): Promise<string> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`
  return textAt((await api.ask('GET', path)).body, 'metadata', 'resourceVersion')
}
