import type { Logger } from 'pino'
import { mediaType, type Encoding } from '../../api/kube/media-type.ts'
import { pathOf } from '../../api/kube/resources.ts'
import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import { podsOf } from '../boot/kubelet-cache.ts'
import type { PortLedger } from '../filter/host-network/ledger.ts'
import { logUnexpected } from './log-failure.ts'
import { nodeRequests, type NodeRequests } from './node-request.ts'

interface NodePodsDependencies {
  readonly nodeName: string
  readonly ledger: Pick<PortLedger, 'needsList'>
  /** Reaches an API server, below filters and limits. */
  readonly dispatch: Handler<Exchange>
  readonly log: Logger
}

/**
 * Lists the node's pods in the place of its kubelet where the port ledger needs them: a kubelet
 * whose hub has lost its cache goes on watching, and sends no list.
 */
export class NodePods implements Disposable {
  readonly #dependencies: NodePodsDependencies
  readonly #closing = new AbortController()
  readonly #request: NodeRequests
  #listing: Promise<void> | undefined

  constructor(dependencies: NodePodsDependencies) {
    const { dispatch, log } = dependencies
    this.#dependencies = dependencies
    this.#request = nodeRequests(dispatch, this.#closing.signal, logUnexpected(log))
  }

  /** `undefined`: the ledger needs no list. Resolves when the list is recorded, or has failed. */
  ensure(encoding: Encoding): Promise<void> | undefined {
    if (!this.#dependencies.ledger.needsList) return undefined
    return (this.#listing ??= this.#list(encoding).finally(() => (this.#listing = undefined)))
  }

  [Symbol.dispose](): void {
    this.#closing.abort()
  }

  async #list(encoding: Encoding): Promise<void> {
    const { gvr, fieldSelector = '' } = podsOf(this.#dependencies.nodeName)
    const url = `${pathOf(gvr)}?${new URLSearchParams({ fieldSelector })}`
    const accept = mediaType(encoding)
    await this.#request({ method: 'GET', url, accept, component: 'kubelet' })
  }
}
