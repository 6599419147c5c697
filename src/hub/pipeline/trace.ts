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
} from '../../http/exchange/exchange.ts'
import type { Explanation } from '../../http/exchange/explanation.ts'
import { accountOf, nodeIdentity } from '../../api/request/identity.ts'
import type { HubMetrics, Traffic, TrafficLabels } from '../../metrics/metrics.ts'
import { componentOf } from '../../api/request/component.ts'
import { isLongRunning, isWatch, type RequestInfo } from '../../api/request/request-info.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { Tracer } from '../../tracing/span.ts'
import type { RefusedReads } from '../boot/refused-reads.ts'
import type { OpenRequest } from './open-requests.ts'
import { recordingSpans } from './request-span.ts'

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
      namespace: info.isResource ? info.namespace : undefined,
      name: info.isResource ? info.name : undefined,
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

interface NamedCaller {
  readonly caller: AnsweredRequest['caller']
  readonly account?: string
}

export function callerOf(exchange: Exchange): NamedCaller {
  if (!isProven(exchange)) return { caller: 'unproven' }
  const identity = exchange.claim?.identity() ?? exchange.identity
  if (identity === nodeIdentity) return { caller: 'node' }
  const account = accountOf(identity)
  if (!account) return { caller: 'token' }
  const { namespace, name } = account
  return { caller: 'service account', account: `system:serviceaccount:${namespace}:${name}` }
}

export const objectOf = (
  info: RequestInfo,
): { readonly namespace?: string; readonly name?: string } =>
  info.isResource
    ? {
        ...(info.namespace !== undefined && { namespace: info.namespace }),
        ...(info.name !== undefined && { name: info.name }),
      }
    : {}

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
