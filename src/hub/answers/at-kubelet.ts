import type { JsonObject } from '../../api/kube/json.ts'
import { listAt, textAt, objectAt } from '../../api/kube/json-at.ts'
import { badRequest, forbidden, serviceUnavailable, StatusError } from '../../api/kube/status.ts'
import { isTrue, type ResourceRequest } from '../../api/request/request-info.ts'
import type { BytesReply, Exchange, UpgradeReply } from '../../http/exchange/exchange.ts'
import { jsonOf, type OnSiteParts } from './on-site-reads.ts'
import { newestRecord } from './newest-records.ts'
import type { Review } from '../../api/codec/review.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { ReviewAnswer } from './recorded-reviews.ts'

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
  const { store, writes, nodeName, kubelet } = parts
  const source = { store, writes, reach: 'everyone' } as const
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

/** The subresources of a pod that its kubelet serves. */
const kubeletSubresources = new Set(['log', 'exec', 'attach', 'portforward'])

/**
 * The kubelet's path and query for a subresource of one of its pods, as an API server writes it
 * (k/k pkg/registry/core/pod/strategy.go). Throws the StatusError of an API server where the query
 * does not name one of the pod's containers.
 */
function kubeletUrl(subresource: string, pod: JsonObject, query: URLSearchParams): string {
  const parameters = parametersOf(subresource, query)
  const root = `/${roots[subresource] ?? ''}`
  const named = [textAt(pod, 'metadata', 'namespace'), textAt(pod, 'metadata', 'name')]
  const path = subresource === 'portforward' ? named : [...named, containerOf(pod, query)]
  return `${[root, ...path.map(encodeURIComponent)].join('/')}?${parameters}`
}

const roots: Readonly<Record<string, string>> = {
  log: 'containerLogs',
  exec: 'exec',
  attach: 'attach',
  portforward: 'portForward',
}

const logFlags = ['follow', 'previous', 'timestamps'] as const
const logValues = ['sinceSeconds', 'sinceTime', 'tailLines', 'limitBytes', 'stream'] as const
const streams = [
  ['stdin', 'input'],
  ['stdout', 'output'],
  ['stderr', 'error'],
  ['tty', 'tty'],
] as const

function parametersOf(subresource: string, query: URLSearchParams): URLSearchParams {
  const parameters = new URLSearchParams()
  if (subresource === 'portforward') {
    const ports = query.getAll('ports')
    if (ports.length > 0) parameters.set('port', ports.join(','))
  } else if (subresource === 'log') {
    for (const name of logFlags) if (isTrue(query.get(name))) parameters.set(name, 'true')
    for (const name of logValues) {
      const value = query.get(name)
      if (value !== null && value !== '') parameters.set(name, value)
    }
  } else {
    for (const [name, as] of streams) if (isTrue(query.get(name))) parameters.set(as, '1')
    for (const word of query.getAll('command')) parameters.append('command', word)
  }
  return parameters
}

/** The requested container, or the only one. */
function containerOf(pod: JsonObject, query: URLSearchParams): string {
  const name = textAt(pod, 'metadata', 'name')
  const names = (of: string): string[] =>
    listAt(pod, 'spec', of).map((each) => textAt(each, 'name'))
  const containers = names('containers')
  const all = [...names('initContainers'), ...containers, ...names('ephemeralContainers')]
  const requested = query.get('container') ?? ''
  if (requested !== '') {
    if (all.includes(requested)) return requested
    throw new StatusError(badRequest(`container ${requested} is not valid for pod ${name}`))
  }
  const [only] = containers
  if (only !== undefined && containers.length === 1) return only
  throw new StatusError(
    badRequest(
      `a container name must be specified for pod ${name}, choose one of: [${all.join(' ')}]`,
    ),
  )
}

/**
 * The parts of the kubelet's API that the hub uses, as the kubelet names them
 * (pkg/kubelet/server/auth.go).
 */
const used = new Set(['proxy', 'stats', 'metrics'])

/**
 * Answers the kubelet of this node that the hub may use the kubelet's API, which it does for root
 * only. `hubName` is the name in the certificate that the hub shows there. `undefined` for any
 * other review, and for any other caller.
 */
export function ownUseOf(
  nodeName: string,
  hubName: string,
  { credential }: Pick<Exchange, 'credential'>,
  { gvr }: Pick<ResourceRequest, 'gvr'>,
  { spec }: Pick<Review, 'spec'>,
): ReviewAnswer | undefined {
  const attributes = objectAt(spec, 'resourceAttributes')
  const isOwnUse =
    credential === 'node' &&
    qualifiedResource(gvr) === 'subjectaccessreviews.authorization.k8s.io' &&
    textAt(spec, 'user') === hubName &&
    textAt(attributes, 'group') === '' &&
    textAt(attributes, 'resource') === 'nodes' &&
    textAt(attributes, 'name') === nodeName &&
    textAt(attributes, 'namespace') === '' &&
    used.has(textAt(attributes, 'subresource')) &&
    ['get', 'create'].includes(textAt(attributes, 'verb'))
  if (!isOwnUse) return undefined
  // No API server has confirmed it.
  return { status: { allowed: true, reason: 'the hub of this node, for root' }, confirmedAt: 0 }
}
