import type { OpenList } from '../../base/open-list.ts'
import { onAbort } from '../../base/abort.ts'
import { elapsed, now } from '../../base/clock.ts'
import {
  isProven,
  type BodyReply,
  type Exchange,
  type Handler,
  type Incoming,
  type WireReply,
  type Explanation,
} from '../../http/exchange/exchange.ts'
import { accountOf, nodeIdentity } from '../../api/request/identity.ts'
import type { HubMetrics, Traffic, TrafficLabels } from '../../metrics/metrics.ts'
import { componentOf } from '../../api/request/component.ts'
import { isLongRunning, isWatch, type RequestInfo } from '../../api/request/request-info.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { endSpan, type Tracer, type Attributes } from '../../tracing/span.ts'
import type { RefusedReads } from '../boot/refused-reads.ts'
import type { OpenRequest } from './open-requests.ts'

/** One answer, for logs: neither its query nor its headers, which may hold secrets. */
export interface AnswerLine {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly verb: string
  /** `endpointslices.discovery.k8s.io`; empty where the request is not about a resource. */
  readonly resource: string
  readonly component: string
  readonly code: number
  readonly source: string
  /** From the request to the end of its answer. */
  readonly ms: number
  /** Why the hub refused the request or failed to answer it. */
  readonly why?: string | undefined
}

/** An answer with the details that the log does not have. */
export interface AnsweredRequest extends AnswerLine {
  /** When it ended, in milliseconds since the epoch. */
  readonly at: number
  /** The caller's kind of identity; `none`: it was refused before authentication. */
  readonly caller: 'node' | 'service account' | 'token' | 'unproven' | 'none'
  /** The cluster's name of a service account; absent: the caller has no such name. */
  readonly account?: string | undefined
  /** Of the object or collection, as the path names them. */
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  /** Bytes of the body that was sent to the client. */
  readonly sentBytes: number
  /** Whether a client waits for its end: not for that of a watch, a log or an upgrade. */
  readonly isShort: boolean
  readonly explanation?: Explanation | undefined
}

export type OnAnswer = (answered: AnsweredRequest) => void

interface TraceParts {
  readonly metrics: HubMetrics
  readonly open: OpenList<OpenRequest>
  readonly refused: Pick<RefusedReads, 'answered'>
  /** Absent: no traces are recorded. */
  readonly tracer: Tracer | undefined
  readonly onAnswer: OnAnswer
}

/**
 * Counts, times and traces each request by verb, resource, component and source, lists it while it
 * is open, and notes reads that the hub refuses.
 */
export function withTrace(parts: TraceParts) {
  return (below: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> => {
    const next = recordingSpans(parts.tracer, below)
    return (exchange) => {
      const traffic = parts.metrics.traffic(trafficLabels(exchange))
      const traced = new TracedRequest(exchange, traffic, parts)
      onAbort(exchange.signal, () => traced.over())
      return next({ ...exchange, traffic }).then((reply) => traced.answered(reply))
    }
  }
}

/** One request: in flight from the first, until it is over. */
class TracedRequest implements OpenRequest {
  readonly exchange: Exchange
  readonly since = now()
  readonly #parts: TraceParts
  readonly #began = elapsed()
  readonly #traffic: Traffic
  #reply: WireReply | undefined
  #code = 0

  constructor(exchange: Exchange, traffic: Traffic, parts: TraceParts) {
    this.exchange = exchange
    this.#parts = parts
    this.#traffic = traffic
    if (exchange.info.isResource) this.#traffic.inFlight++
    if (isWatch(exchange.info)) parts.metrics.watches.add(1)
    parts.open.add(this)
  }

  get source(): OpenRequest['source'] {
    return this.#reply?.from
  }

  get sentBytes(): number {
    const reply = this.#reply
    return reply?.kind === 'body' ? reply.body.byteLength : (this.exchange.client?.sentBytes ?? 0)
  }

  /** Counts the answer. */
  answered(reply: WireReply): WireReply {
    this.#reply = reply
    this.#parts.refused.answered(this.exchange, reply)
    if (reply.kind !== 'upgrade') this.#count(reply.status, reply)
    else if (reply.finalStatus) void reply.finalStatus.then((code) => this.#count(code, reply))
    else this.#count(101, reply)
    if (this.exchange.signal.aborted) this.#note(reply)
    return reply
  }

  /** The client has disconnected, or has its answer. */
  over(): void {
    if (this.exchange.info.isResource) this.#traffic.inFlight--
    if (isWatch(this.exchange.info)) this.#parts.metrics.watches.add(-1)
    this.#parts.open.delete(this)
    if (this.#reply) this.#note(this.#reply)
  }

  #count(code: number, { from: source }: WireReply): void {
    this.#code = code
    this.#traffic.answered(source, code)
  }

  #note(reply: WireReply): void {
    const { id, method, component, info, upgrade } = this.exchange
    const { verb, path } = info
    const { from: source } = reply
    const ms = elapsed() - this.#began
    const isShort = !isLongRunning(info) && !upgrade
    if (isShort) this.#traffic.took(source, ms / 1000)
    const { caller, account } = callerOf(this.exchange)
    this.#parts.onAnswer({
      id,
      method,
      path,
      verb,
      resource: info.isResource ? qualifiedResource(info.gvr) : '',
      component,
      code: this.#code,
      source,
      ms,
      why: whyOf(reply),
      at: now(),
      caller,
      account,
      ...objectOf(info),
      sentBytes: this.sentBytes,
      isShort,
      explanation: reply.explanation,
    })
  }
}

/**
 * Counts answers to requests that never became exchanges, as they could not be parsed or
 * authenticated.
 */
export function refusalTrace(metrics: HubMetrics, onAnswer: OnAnswer) {
  return (incoming: Incoming, reply: BodyReply): void => {
    const began = elapsed()
    const line = refusalLine(incoming, reply)
    const { verb, component, source } = line
    metrics.requests.add({ verb, resource: '', component, code: String(line.code), source })
    onAbort(incoming.signal, () =>
      onAnswer({
        ...line,
        ms: elapsed() - began,
        at: now(),
        caller: 'none',
        sentBytes: reply.body.byteLength,
        isShort: false,
        explanation: reply.explanation,
      }),
    )
  }
}

/** The line of an answer to a request that never became an exchange. */
export function refusalLine(
  { id, method, url, headers }: Incoming,
  reply: BodyReply,
): Omit<AnswerLine, 'ms'> {
  const [path = ''] = url.split('?')
  const why = whyOf(reply)
  return {
    id,
    method,
    path,
    verb: method.toLowerCase(),
    resource: '',
    component: componentOf(headers.get('user-agent')),
    code: reply.status,
    source: reply.from,
    ...(why !== undefined && { why }),
  }
}

export function callerOf(exchange: Exchange): Pick<AnsweredRequest, 'caller' | 'account'> {
  if (!isProven(exchange)) return { caller: 'unproven' }
  const identity = exchange.claim?.identity() ?? exchange.identity
  if (identity === nodeIdentity) return { caller: 'node' }
  const account = accountOf(identity)
  if (!account) return { caller: 'token' }
  const { namespace, name } = account
  return { caller: 'service account', account: `system:serviceaccount:${namespace}:${name}` }
}

export const objectOf = (info: RequestInfo) => ({
  namespace: info.isResource ? info.namespace : undefined,
  name: info.isResource ? info.name : undefined,
})

/** In characters: a Status may quote a selector of its request. */
const longestWhy = 200

const whyOf = ({ kind, from, explanation }: WireReply): string | undefined =>
  kind === 'body' && from === 'hub' ? explanation?.reason?.slice(0, longestWhy) : undefined

/** The labels under which the traffic of a request is counted. */
export function trafficLabels({ info, component }: Exchange): TrafficLabels {
  return {
    verb: info.verb,
    resource: info.isResource ? info.gvr.resource : '',
    subresources: (info.isResource ? info.subresource : undefined) ?? '',
    client: component,
  }
}

/**
 * The same handler; it records the span of each sampled request: until the end of its answer or, of
 * a watch, exec and the like, until the head of the answer. The trace of a caller is continued once
 * it is proven: other callers could have the hub export arbitrary data.
 */
function recordingSpans(
  tracer: Tracer | undefined,
  next: Handler<Exchange, WireReply>,
): Handler<Exchange, WireReply> {
  if (!tracer) return next
  return async (exchange) => {
    const { info, method, headers } = exchange
    const parent = isProven(exchange) ? headers : undefined
    const route = routeOf(info)
    const name = route === undefined ? method : `${method} ${route}`
    const span = tracer.begin(name, requestAttributes(exchange, route), parent)
    if (!span) return next(exchange)
    const lasts = isLongRunning(info) || exchange.upgrade
    const reply = await next({ ...exchange, span }).catch((cause: unknown) => {
      span.end('UNEXPECTED')
      throw cause
    })
    span.set(answerAttributes(reply))
    if (reply.kind === 'upgrade')
      void ended(reply.finalStatus).then((code) => endSpan(span, code, 500))
    else if (lasts) endSpan(span, reply.status, 500)
    else onAbort(exchange.signal, () => endSpan(span, reply.status, 500))
    return reply
  }
}

const ended = async (finalStatus: Promise<number> | undefined): Promise<number> =>
  (await finalStatus) ?? 101

/** Neither the query nor other header fields: they may hold secrets. */
const requestAttributes = (
  { id, method, info, component, peer }: Exchange,
  route: string | undefined,
): Attributes => ({
  'http.request.method': method,
  'http.route': route,
  'url.path': info.path,
  'url.scheme': peer.tls ? 'https' : 'http',
  'server.address': peer.localAddress,
  'server.port': peer.localPort,
  'nodehub.request.id': id,
  'nodehub.verb': info.verb,
  'nodehub.resource': info.isResource ? qualifiedResource(info.gvr) : undefined,
  'nodehub.component': component,
})

/** The words of X-Nodehub-Explain. */
const answerAttributes = (reply: WireReply): Attributes =>
  Object.fromEntries(explained(reply).map(([name, value]) => [`nodehub.${name}`, value]))

/** The path without names, which would be too many for names of spans. */
function routeOf(info: RequestInfo): string | undefined {
  if (!info.isResource) return undefined
  const { gvr, namespace, name, subresource } = info
  return [
    gvr.group === '' ? '/api' : `/apis/${gvr.group}`,
    gvr.version,
    ...(namespace === undefined ? [] : ['namespaces', '{namespace}']),
    gvr.resource,
    ...(name === undefined ? [] : ['{name}']),
    ...(subresource === undefined ? [] : [subresource]),
  ].join('/')
}

/** In a request `1` requests an explanation; in an answer it is the explanation. */
const explainHeader = 'X-Nodehub-Explain'
const lowerCase = explainHeader.toLowerCase()

/** In characters: a reason may repeat what the client has sent. */
const longestReason = 256

/**
 * Adds `X-Nodehub-Explain` to the answers to callers that may have it and request it: the source,
 * the reason, the age, the API server and the filters. The field of a request goes no further, for
 * any caller. Exec and the like are not explained: their answer is written elsewhere.
 */
export function withExplanation(mayBeExplained: (exchange: Exchange) => Promise<boolean>) {
  return (next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> => {
    const explaining: Handler<Exchange, WireReply> = async (exchange) => {
      const wanted = exchange.headers.get(lowerCase)
      const headers = exchange.headers.without((name) => name === lowerCase)
      const isExplained = wanted === '1' && (await mayBeExplained(exchange))
      const reply = await next({ ...exchange, headers })
      if (!isExplained || reply.kind === 'upgrade') return reply
      const own = reply.headers.without((name) => name === lowerCase)
      return { ...reply, headers: own.with(explainHeader, explanationOf(reply)) }
    }
    return (exchange) => (exchange.headers.has(lowerCase) ? explaining : next)(exchange)
  }
}

/** Why the hub gave an answer, as the header has it; spans use the same words. */
function explained(reply: WireReply) {
  const { from: source, explanation: { reason, upstream, filtered } = {} } = reply
  const age = source === 'cache' && reply.kind !== 'upgrade' ? reply.headers.get('age') : undefined
  const words = {
    source,
    reason: reason === undefined ? undefined : quotable(reason),
    upstream,
    // In seconds, of an answer of the cache.
    age: age === undefined ? undefined : Number(age),
    filters: filtered?.filters,
  }
  return Object.entries(words).filter(([, value]) => value !== undefined)
}

const explanationOf = (reply: WireReply): string =>
  explained(reply)
    .map(([name, value]) => (name === 'reason' ? `reason="${value}"` : `${name}=${value}`))
    .join('; ')

/** Fit for a quoted string (RFC 9110 section 5.6.4), in one line of ASCII. */
const quotable = (text: string): string =>
  text
    .slice(0, longestReason)
    .replaceAll('"', "'")
    .replaceAll(/[^\x20-\x7e]|\\/g, '?')
