import { now } from '../../base/clock.ts'
import { timeText } from '../../certificates/validity.ts'
import type { HubCertificateRules } from '../../config/cluster-config.ts'
import { isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { listAt, textAt } from '../../api/kube/json-at.ts'
import type { Informer } from '../../api/reflector/informer.ts'
import type { ApiServer } from '../api/api-server.ts'
import { isConflict, isNotFound } from '../api/failure.ts'
import { apiInformer } from '../api/informer.ts'
import type { NodeFacts } from '../controller/node-facts.ts'
import { WorkQueue } from '../controller/work-queue.ts'
import { judge, type CertificateRequestFacts, type Judgement } from './judgement.ts'

export interface ApproverOptions {
  readonly api: ApiServer
  /** Aborts when this process no longer leads. */
  readonly term: AbortSignal
  readonly rules: HubCertificateRules
  /** Every node of the cluster. */
  readonly nodes: ReadonlyMap<string, NodeFacts>
  /** Resolves when all nodes are known. */
  readonly nodesListed: Promise<unknown>
  readonly onDecided?: (name: string, verdict: Judgement['verdict'], why: string) => void
  readonly onFailure?: (cause: unknown, what: string) => void
  /** How soon it decides again on a request of a node that has not registered. */
  readonly againMs?: number
}

const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

/** The Service whose ClusterIPs lead pods to their hub. */
const servicePath = '/api/v1/namespaces/default/services/kubernetes'

/** The prefix of hubs' requests. It leaves alone those of kubelets and of all other clients. */
const prefix = 'nodehub-'

/** A request that waits for a decision. */
interface Pending extends CertificateRequestFacts {
  readonly resourceVersion: string
  readonly conditions: readonly Json[]
}

/** More than a request can be; a larger one is stored as an empty one, which is denied. */
const longestRequest = 64 * 1024

/**
 * Approves the requests of nodes for the serving certificates of their hubs, and denies invalid
 * ones, with the reason in the condition. It does not change decisions of other approvers.
 */
export class ServingCertificateApprover implements AsyncDisposable {
  readonly #options: ApproverOptions
  readonly #queue: WorkQueue
  readonly #informers: readonly Informer<Pending>[]

  constructor(options: ApproverOptions) {
    this.#options = options
    const { api, rules, term } = options
    const onFailure = (cause: unknown, what: string): void => {
      if (!isConflict(cause) && !term.aborted) options.onFailure?.(cause, what)
    }
    this.#queue = new WorkQueue({
      workers: 2,
      after: options.nodesListed,
      act: (name) => this.#decide(name),
      onFailure: (name, cause) => onFailure(cause, `certificatesigningrequest ${name}`),
    })
    this.#informers = rules.signers.map((signer) =>
      apiInformer<Pending>(api, {
        path,
        query: { fieldSelector: `spec.signerName=${signer}` },
        transform: pending,
        onChange: (name, now) => {
          if (now) this.#queue.add(name)
        },
        onFailure: (cause) => onFailure(cause, 'certificatesigningrequests'),
      }),
    )
  }

  /** How many requests wait for a decision; `undefined` before all are listed. */
  get depth(): number | undefined {
    return this.#informers.every(({ synced }) => synced) ? this.#queue.depth : undefined
  }

  async #decide(name: string): Promise<number | undefined> {
    const { rules, nodes, onDecided, againMs = 15_000 } = this.#options
    const request = this.#informers.map(({ items }) => items.get(name)).find((each) => each)
    if (request === undefined) return undefined
    const judgement = await judge(request, rules, nodes, () => this.#serviceAddresses())
    if (judgement === undefined) return againMs
    const { verdict, why } = judgement
    if (await this.#write(name, request, judgement)) onDecided?.(name, verdict, why)
    return undefined
  }

  /** Read for each decision: a failed read is retried, as the whole decision is. */
  async #serviceAddresses(): Promise<readonly string[]> {
    const { api, term } = this.#options
    const service = await api.call({ method: 'GET', path: servicePath, signal: term })
    return listAt(service, 'spec', 'clusterIPs').map(String)
  }

  /**
   * Adds the condition to the version that it has decided on. False where the request is gone; on a
   * conflict the watch brings the newer version, and with it perhaps another approver's decision.
   */
  async #write(
    name: string,
    { resourceVersion, conditions }: Pending,
    { verdict, why }: Judgement,
  ): Promise<boolean> {
    const { api, term } = this.#options
    const condition = {
      type: verdict === 'approved' ? 'Approved' : 'Denied',
      status: 'True',
      reason: 'NodehubServingCertificate',
      message: `nodehub-cluster: ${why}`,
      lastUpdateTime: timeText(now()),
    }
    const patch = {
      metadata: { resourceVersion },
      status: { conditions: [...conditions, condition] },
    }
    try {
      await api.patch(`${path}/${name}/approval`, patch, term)
      return true
    } catch (cause) {
      if (isNotFound(cause)) return false
      throw cause
    }
  }

  /** Resolves when all its work has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#queue, ...this.#informers].map((each) => each[Symbol.asyncDispose]()))
  }
}

/** `undefined` for a request that is not a hub's, or is decided already. */
function pending(object: JsonObject): Pending | undefined {
  const conditions = listAt(object, 'status', 'conditions').filter(isObject)
  const isDecided = conditions.some((each) =>
    ['Approved', 'Denied', 'Failed'].includes(textAt(each, 'type')),
  )
  if (!textAt(object, 'metadata', 'name').startsWith(prefix) || isDecided) return undefined
  const request = textAt(object, 'spec', 'request')
  const texts = (member: string): string[] => listAt(object, 'spec', member).map(String)
  return {
    resourceVersion: textAt(object, 'metadata', 'resourceVersion'),
    conditions,
    username: textAt(object, 'spec', 'username'),
    groups: texts('groups'),
    usages: texts('usages'),
    request:
      request.length > longestRequest ? '' : Buffer.from(request, 'base64').toString('latin1'),
  }
}
