import { follow } from '../../base/abort.ts'
import { after } from '../../base/clock.ts'
import { goJson } from '../../api/codec/json/write.ts'
import { isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt } from '../../api/kube/json-at.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { nodes, pods } from '../../api/kube/resources.ts'
import { canonicalFieldSelector, selectorOfName } from '../../api/kube/selectors.ts'
import { forbidden, serviceUnavailable, StatusError } from '../../api/kube/status.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { wholeText } from '../../http/exchange/chunks.ts'
import type { BodyReply, Exchange } from '../../http/exchange/exchange.ts'
import { needsCertificate, type AtKubeletParts } from './at-kubelet.ts'
import { selectorsOf } from './keys.ts'
import { mergedRecords } from './merged-records.ts'
import { neverCached } from './offline-reads.ts'
import { jsonOf } from './on-site-reads.ts'
import { answerHeaders } from './replies.ts'

export const metricsGroup = 'metrics.k8s.io'
export const metricsVersion = 'v1beta1'

const apiVersion = `${metricsGroup}/${metricsVersion}`

/** The summary of a few hundred pods is some 300 KB. */
const longestSummary = 8 * 1024 * 1024

/** A kubelet collects the summary in far less than a second. */
const patienceMs = 10_000

/**
 * Answers `kubectl top` while no API server can be reached, for callers with the kubelet's
 * certificate: NodeMetrics of this node and PodMetrics of its pods, from the kubelet's summary.
 * Like metrics-server, it leaves out pods with a container whose usage the kubelet does not know.
 * It has no metrics of other nodes. `undefined` for any other request or caller.
 */
export async function metricsFromKubelet(
  exchange: Exchange,
  info: ResourceRequest,
  parts: AtKubeletParts,
): Promise<BodyReply | undefined> {
  const { group, version, resource } = info.gvr
  if (group !== metricsGroup || version !== metricsVersion) return undefined
  const isRead = exchange.method === 'GET' && (info.verb === 'get' || info.verb === 'list')
  if (!isRead || info.subresource !== undefined || exchange.upgrade) return undefined
  const read = resource === 'pods' ? podMetrics : resource === 'nodes' ? nodeMetrics : undefined
  if (!read || !acceptsJson(exchange)) return undefined
  const reach = await parts.reachOf(exchange)
  if (reach === 'own') return undefined
  if (reach === 'node') throw new StatusError(forbidden(needsCertificate))
  const known = await recordedHere(info, parts)
  const summary = await summaryOf(exchange, parts)
  const items = read(summary, known)
  const kind = resource === 'pods' ? 'PodMetrics' : 'NodeMetrics'
  if (info.verb === 'list') {
    return replyOf({ kind: `${kind}List`, apiVersion, metadata: {}, items }, parts)
  }
  const [only] = items
  if (!only) throw new StatusError(serviceUnavailable(notYet(info.name ?? '')))
  return replyOf({ kind, apiVersion, ...only }, parts)
}

const acceptsJson = ({ representations }: Exchange): boolean =>
  representations.some(({ encoding, projection }) => encoding === 'json' && projection === 'object')

const notYet = (name: string): string =>
  `the cloud cannot be reached, and the kubelet does not know the usage of ${name} yet`

function replyOf(object: JsonObject, { nodeName }: AtKubeletParts): BodyReply {
  const warning = `299 - "answered by the kubelet of ${nodeName}: the cloud cannot be reached, and nothing is known of other nodes"`
  return {
    kind: 'body',
    from: 'hub',
    status: 200,
    headers: answerHeaders(mediaType('json')).with('Warning', warning),
    body: Buffer.from(`${goJson(object)}\n`),
  }
}

/**
 * The selected pods of this node, or the node, as components have recorded them: the kubelet's
 * summary has no labels. Throws 503 where the records do not show that there is none.
 */
async function recordedHere(
  info: ResourceRequest,
  { store, overlays, nodeName }: AtKubeletParts,
): Promise<readonly JsonObject[]> {
  const isPods = info.gvr.resource === 'pods'
  const { labelSelector, fieldSelector } = selectorsOf(info)
  const here = isPods ? `spec.nodeName=${nodeName}` : selectorOfName(nodeName)
  const named = info.name === undefined ? '' : selectorOfName(info.name)
  const terms = [fieldSelector, here, named].filter((each) => each !== '')
  const source = { store, overlays, isShown: () => true }
  const query = {
    gvr: isPods ? pods : nodes,
    ...(info.namespace !== undefined && { namespace: info.namespace }),
    labelSelector,
    fieldSelector: canonicalFieldSelector(terms.join(',')),
  }
  const merged = await mergedRecords(query, source)
  if (!merged || (merged.records.length === 0 && !merged.covering)) throw neverCached()
  if (info.name !== undefined && merged.records.length === 0) {
    throw new StatusError(serviceUnavailable(notHere(info, nodeName)))
  }
  return merged.records.flatMap((record) => {
    const shown = jsonOf(record, source)
    return shown ? [shown.json] : []
  })
}

const notHere = ({ gvr, name }: ResourceRequest, nodeName: string): string =>
  gvr.resource === 'pods'
    ? `the cloud cannot be reached, and pod ${name} is not known to run on this node (${nodeName})`
    : `the cloud cannot be reached, and the usage of node ${name} is not known on this node (${nodeName})`

async function summaryOf(exchange: Exchange, { kubelet }: AtKubeletParts): Promise<Json> {
  const ending = new AbortController()
  using _gone = follow(exchange.signal, ending)
  using _late = after(patienceMs, () => ending.abort(new Error('the kubelet did not answer')))
  const headers = exchange.headers
    .without((name) => name === 'accept' || name === 'accept-encoding')
    .with('Accept', mediaType('json'))
  const request = { ...exchange, headers, signal: ending.signal }
  const { source } = await kubelet.get(request, '/stats/summary?only_cpu_and_memory=true')
  const text = await wholeText(source, longestSummary).catch(unreadable)
  try {
    return JSON.parse(text) as Json
  } catch (cause) {
    return unreadable(cause)
  }
}

function unreadable(cause: unknown): never {
  const why = cause instanceof Error ? cause.message : String(cause)
  const message = `the cloud cannot be reached, and the summary of the kubelet cannot be read: ${why}`
  throw new StatusError(serviceUnavailable(message), { cause })
}

/** The usage of a container, pod or node, and the time of its measurement. */
interface Usage {
  readonly timestamp: string
  readonly usage: JsonObject
}

/** `undefined` where the kubelet does not know all of it. */
function usageOf(stats: Json | undefined): Usage | undefined {
  const cpu = valueAt(stats, 'cpu', 'usageNanoCores')
  const memory = valueAt(stats, 'memory', 'workingSetBytes')
  const timestamp = textAt(stats, 'cpu', 'time')
  if (typeof cpu !== 'number' || typeof memory !== 'number' || timestamp === '') return undefined
  return { timestamp, usage: { cpu: `${cpu}n`, memory: String(memory) } }
}

/** Without `window`, which the kubelet's summary lacks. */
function nodeMetrics(summary: Json, known: readonly JsonObject[]): JsonObject[] {
  const used = usageOf(valueAt(summary, 'node'))
  return known.flatMap((node) => (used ? [{ metadata: metadataOf(node), ...used }] : []))
}

function podMetrics(summary: Json, known: readonly JsonObject[]): JsonObject[] {
  const statsOf = new Map(
    listAt(summary, 'pods').map((each) => [
      nameOf(textAt(each, 'podRef', 'namespace'), textAt(each, 'podRef', 'name')),
      each,
    ]),
  )
  return known.flatMap((pod) => {
    const metadata = metadataOf(pod)
    const stats = statsOf.get(
      nameOf(textAt(pod, 'metadata', 'namespace'), textAt(metadata, 'name')),
    )
    const containers = listAt(stats, 'containers').map((each) => {
      const used = usageOf(each)
      return used && { name: textAt(each, 'name'), ...used }
    })
    const [oldest] = containers.map((each) => each?.timestamp ?? '').toSorted()
    if (oldest === undefined || oldest === '') return []
    const shown = containers.map((each) => ({ name: each?.name ?? '', usage: each?.usage ?? {} }))
    return [{ metadata, timestamp: oldest, containers: shown }]
  })
}

const nameOf = (namespace: string, name: string): string => `${namespace}/${name}`

function metadataOf(object: JsonObject): JsonObject {
  const { name = '', namespace, labels } = objectAt(object, 'metadata')
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    ...(isObject(labels) && { labels }),
  }
}
