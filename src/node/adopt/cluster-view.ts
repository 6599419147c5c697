import { isConditionTrue } from '../../api/kube/conditions.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import type { Credentials } from '../../config/credentials.ts'
import { anyApiCall, type ApiResponse } from '../../http/client/api-call.ts'
import type { ApiClient } from '../join/pool-membership.ts'

const patienceMs = 5000

/** The cluster's state of this node, read from the hub's API servers without the hub. */
export class ClusterView implements ApiClient {
  readonly #servers: readonly URL[]
  readonly #credentials: Credentials

  constructor(servers: readonly URL[], credentials: Credentials) {
    this.#servers = servers
    this.#credentials = credentials
  }

  get address(): string {
    return this.#servers.map(({ origin }) => origin).join(',')
  }

  /** The answer of the first API server that gives one. Rejects where none does. */
  ask(method: string, path: string): Promise<ApiResponse> {
    return anyApiCall(this.#servers, this.#credentials, { patienceMs })({ method, path })
  }

  /** Whether the Node is Ready. Rejects where that is not known, with the reason. */
  async isReady(node: string): Promise<boolean> {
    const { status, body } = await this.ask('GET', `/api/v1/nodes/${node}`)
    if (status !== 200) throw new Error(`${this.address} answered ${status} for node ${node}`)
    return isConditionTrue(body, 'Ready')
  }

  /**
   * The version of the Node's lease, which is another one after each renewal; '' where there is
   * none yet.
   */
  async leaseVersion(node: string): Promise<string> {
    const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`
    const { body } = await this.ask('GET', path)
    return textAt(objectAt(body, 'metadata'), 'resourceVersion')
  }
}
