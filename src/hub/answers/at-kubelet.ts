import { textAt } from '../../api/kube/json-at.ts'
import { forbidden, serviceUnavailable, StatusError } from '../../api/kube/status.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { BytesReply, Exchange, UpgradeReply } from '../../http/exchange/exchange.ts'
import { kubeletSubresources, kubeletUrl } from './kubelet-url.ts'
import { jsonOf, type OnSiteParts } from './on-site-reads.ts'
import { newestRecord } from './newest-records.ts'

/** The kubelet of this node, through its own API. */
export interface Kubelet {
  /** Sends a GET. Throws the StatusError of an API server where the kubelet refuses it. */
  get(exchange: Exchange, url: string): Promise<BytesReply>
  upgrade(exchange: Exchange, url: string): Promise<UpgradeReply>
}

export interface AtKubeletParts extends OnSiteParts {
  readonly nodeName: string
  readonly kubelet: Kubelet
}

/**
 * Has the node's own kubelet answer logs, exec, attach and port-forward while no API server can be
 * reached, for callers with the kubelet's certificate. `undefined` for any other request or caller.
 */
export async function relayedToKubelet(
  exchange: Exchange,
  info: ResourceRequest,
  parts: AtKubeletParts,
): Promise<BytesReply | UpgradeReply | undefined> {
  const { gvr, namespace = '', name = '', subresource = '' } = info
  const isForKubelet =
    gvr.group === '' && gvr.resource === 'pods' && kubeletSubresources.has(subresource)
  if (!isForKubelet || name === '') return undefined
  if (exchange.method === 'HEAD' || exchange.upgrade === (subresource === 'log')) return undefined
  const reach = await parts.reachOf(exchange)
  if (reach === 'own') return undefined
  if (reach === 'node') throw new StatusError(forbidden(needsCertificate))
  const { store, overlays, nodeName, kubelet } = parts
  const source = { store, overlays, reach: 'everyone' } as const
  const record = newestRecord({ gvr, namespace, name }, source)
  const pod = typeof record === 'object' ? jsonOf(record, source)?.json : undefined
  if (pod === undefined || textAt(pod, 'spec', 'nodeName') !== nodeName) {
    throw new StatusError(serviceUnavailable(notHere(`${namespace}/${name}`, nodeName)))
  }
  const url = kubeletUrl(subresource, pod, info.query)
  return exchange.upgrade ? kubelet.upgrade(exchange, url) : kubelet.get(exchange, url)
}

/** By its socket, a container on the host's network may be root, too. */
const needsCertificate =
  "the cloud cannot be reached, and the hub relays to the kubelet only for callers with the kubelet's certificate: use root's kubeconfig for the hub's TLS port"

const notHere = (pod: string, nodeName: string): string =>
  `the cloud cannot be reached, and pod ${pod} is not known to run on this node (${nodeName})`
