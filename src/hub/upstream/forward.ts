import { elapsed } from '../../base/clock.ts'
import type { Connections } from '../../http/client/connections.ts'
import type { Exchange, UpstreamReply } from '../../http/exchange/exchange.ts'
import {
  isFromApiServer,
  isHopByHop,
  HeaderList,
  namedByConnection,
} from '../../http/exchange/headers.ts'
import { attempt, NoAnswer, Unresponsive, type Outgoing } from './attempt.ts'
import { isDraining } from './draining.ts'
import type { Cloud } from './cloud.ts'
import { isRelayed } from '../../api/request/request-info.ts'
import type { Upstream } from './upstream.ts'
import { endSpan, type Span } from '../../tracing/span.ts'

/** No upstream answered. */
export class Unreachable extends Error {
  readonly code = 'UNREACHABLE'
  /** False where no upstream can have received the request. */
  readonly sent: boolean
  constructor(sent: boolean, cause?: unknown) {
    super('no API server can be reached', { cause })
    this.sent = sent
  }
}

/**
 * An API server answered 401 to the hub's own credentials, or the hub has none yet: a fault of the
 * hub, and not an answer to the caller.
 */
export class CredentialsRefused extends Error {
  readonly code = 'CREDENTIALS_REFUSED'
  /** Without `origin`: every API server refuses them, or the hub has none yet. */
  constructor(origin?: string) {
    super(
      origin === undefined
        ? "no API server accepts the hub's credentials"
        : `${origin} does not accept the hub's credentials (401)`,
    )
  }
}

export interface ForwardOptions {
  /** `ms`: from the request to the head of the answer, or to the failure. */
  readonly onOutcome: (origin: string, outcome: 'answered' | 'failed', ms: number) => void
  /**
   * Called now and then while no API server is ready, and the one that has the request does not
   * answer it: whether to give it up there. It does not reject.
   */
  readonly insteadOfWaiting?: () => Promise<boolean>
}

/** Codes beside successes that an API server answers only after successful authentication. */
const behindAuthentication = new Set([403, 404, 409])

/** The answers of an API server until it has read tokens, roles and custom resources. */
const startRefusals = new Set([401, 403, 404])

/** A gateway answered in the place of the API server. */
class GatewayAnswer extends Error {
  readonly code = 'GATEWAY_ANSWER'
  constructor(origin: string, status: number) {
    super(`a gateway before ${origin} answered ${status}`)
  }
}

export type Forward = (exchange: Exchange, options: ForwardOptions) => Promise<UpstreamReply>

/**
 * Sends a request upstream and resolves with the head of the answer. A read is retried at the next
 * upstream where one gives no answer, or a gateway answers in its place; a write only where the
 * first upstream provably never received it. Both are where one refuses the hub's own credentials,
 * but for a write whose body was sent already. A read is also retried where an API server lags
 * behind the requested version, drains, or refuses while it is starting; the last such answer is
 * returned where no upstream has a better one. Rejects with `Unreachable` when no upstream is left
 * to try, and with `CredentialsRefused` where none is left that does not refuse the hub's
 * credentials.
 */
export function forwarder(
  cloud: Cloud,
  connections: Connections,
  trafficOf: (exchange: Exchange) => Outgoing['traffic'],
): Forward {
  return (exchange, options) => {
    // Without an identity the request would be anonymous, and its answer not the node's.
    if (exchange.credential === 'node' && connections.credentials.awaited)
      return Promise.reject(new CredentialsRefused())
    const traffic = exchange.traffic ?? trafficOf(exchange)
    return new Forwarding(cloud, connections, exchange, options, traffic).next()
  }
}

/** One request on its way through the upstreams, until one of them has answered it. */
class Forwarding implements Outgoing {
  readonly exchange: Exchange
  readonly repeatable: boolean
  readonly traffic: Outgoing['traffic']
  readonly #cloud: Cloud
  readonly #connections: Connections
  readonly #options: ForwardOptions
  readonly #upstreams: readonly Upstream[]
  /** How many of them were tried. */
  #tried = 0
  headers: HeaderList
  #failure: NoAnswer | undefined
  #sent = false
  #fallback: { reply: UpstreamReply; upstream: Upstream } | undefined
  #refusal: { error: CredentialsRefused; upstream: Upstream } | undefined

  constructor(
    cloud: Cloud,
    connections: Connections,
    exchange: Exchange,
    options: ForwardOptions,
    traffic: Outgoing['traffic'],
  ) {
    this.exchange = exchange
    this.headers = exchange.headers
    this.traffic = traffic
    this.repeatable = exchange.method === 'GET' || exchange.method === 'HEAD'
    this.#cloud = cloud
    this.#connections = connections
    this.#options = options
    this.#upstreams = attempts(cloud.attemptOrder(exchange), this.repeatable)
  }

  /** The answer of the next upstream that is of use, or of one after it. */
  next(): Promise<UpstreamReply> {
    const { signal } = this.exchange
    for (;;) {
      const upstream = this.#upstreams[this.#tried]
      if (!upstream) return this.#noMore()
      if (signal.aborted) return Promise.reject(signal.reason as Error)
      this.#tried++
      if (this.#isOfNoUse(upstream)) continue
      const began = elapsed()
      return this.#attempt(upstream).then(
        (reply) => this.#answered(upstream, began, reply),
        (cause: unknown) => this.#failed(upstream, began, cause),
      )
    }
  }

  #isOfNoUse(upstream: Upstream): boolean {
    // It may have become unhealthy since the list was made.
    if (upstream.isGone) return true
    if (this.#tried === 1) return false
    // A second attempt helps against a broken connection, not where the upstream itself is
    // unresponsive, lags or drains.
    const failure = this.#failure
    if (failure?.cause instanceof Unresponsive && failure.upstream === upstream) return true
    return this.#fallback?.upstream === upstream || this.#refusal?.upstream === upstream
  }

  #attempt(upstream: Upstream): Promise<UpstreamReply> {
    const { exchange } = this
    const span = attemptSpan(exchange, upstream.origin)
    this.headers = outgoingHeaders(exchange, upstream.host, this.#connections, span)
    const answer = attempt(this, upstream, this.#connections)
    if (span)
      answer.then(
        ({ status }) => endSpan(span, status, 400),
        (cause: unknown) => span.end(firstCause(cause)),
      )
    return answer
  }

  /** Where the upstream is not ready, as without its etcd, and there is something better. */
  async isInVain(): Promise<boolean> {
    if (this.#upstreams[this.#tried - 1]?.health !== 'unready') return false
    if (this.#cloud.upstreams.some(({ availability }) => availability === 'ready')) return true
    return (await this.#options.insteadOfWaiting?.()) === true
  }

  #answered(
    upstream: Upstream,
    began: number,
    reply: UpstreamReply,
  ): UpstreamReply | Promise<UpstreamReply> {
    const { exchange, repeatable } = this
    const { status } = reply
    const isGateways = isOfGateway(reply)
    if (repeatable && isGateways) {
      discard(reply)
      const cause = new GatewayAnswer(upstream.origin, status)
      return this.#failed(upstream, began, new NoAnswer(upstream, true, cause))
    }
    const drains = repeatable && isDraining(reply)
    // It waited for etcd, or for a webhook, in vain.
    const ranOut = status === 504 && !isBehind(reply, exchange) && !isRelayed(exchange.info)
    if (isGateways || drains || ranOut) upstream.failed(began)
    else upstream.answered()
    this.#options.onOutcome(upstream.origin, 'answered', elapsed() - began)
    if (exchange.credential === 'node' && refusesHub(reply, exchange, upstream, began)) {
      // It has not acted on the request.
      discard(reply)
      this.#refusal = { upstream, error: new CredentialsRefused(upstream.origin) }
      return isBodyConsumed(exchange) ? this.#noMore() : this.next()
    }
    if (this.#fallback) discard(this.#fallback.reply)
    const isStarting = startRefusals.has(status) && upstream.isStarting
    const answer: UpstreamReply = isStarting ? { ...reply, isStarting } : reply
    const isProvisional = drains || isBehind(reply, exchange) || (isStarting && repeatable)
    if (!isProvisional) return answer
    this.#fallback = { reply: answer, upstream }
    return this.next()
  }

  #failed(upstream: Upstream, began: number, cause: unknown): Promise<UpstreamReply> {
    if (!(cause instanceof NoAnswer) || this.exchange.signal.aborted)
      return Promise.reject(cause as Error)
    this.#failure = cause
    this.#sent ||= cause.sent
    this.#options.onOutcome(upstream.origin, 'failed', elapsed() - began)
    upstream.failed(began)
    const isOver = (!this.repeatable && cause.sent) || isBodyConsumed(this.exchange)
    return isOver ? this.#noMore() : this.next()
  }

  async #noMore(): Promise<UpstreamReply> {
    if (this.#fallback) return this.#fallback.reply
    // A write that another one may have received is not answered as one that none has.
    if (this.#refusal && (this.repeatable || !this.#sent)) throw this.#refusal.error
    throw new Unreachable(this.#sent, this.#failure)
  }
}

/** Whether the API server refuses the hub's own credentials; notes that at the upstream. */
function refusesHub(
  { status }: UpstreamReply,
  { method, info }: Exchange,
  upstream: Upstream,
  began: number,
): boolean {
  if (status === 401) {
    // A pod or a kubelet may have answered, unless the API server is known to refuse.
    if (isRelayed(info) && !upstream.refusesCredentials) return false
    upstream.credentialsShown(false, 'request', began)
    return true
  }
  const isSuccess = status >= 200 && status < 300
  if (method !== 'OPTIONS' && (isSuccess || behindAuthentication.has(status))) {
    upstream.credentialsShown(true, 'request', began)
  }
  return false
}

/** Whether part of the body was read from the client already, and cannot be sent again. */
export const isBodyConsumed = ({ body, content }: Exchange): boolean =>
  content === undefined && body?.readableDidRead === true

/**
 * Whether a gateway gave the answer: a 502 to 504 without the headers of an API server, which
 * reports failures in a Status.
 */
const isOfGateway = ({ status, headers }: UpstreamReply): boolean =>
  status >= 502 &&
  status <= 504 &&
  !isFromApiServer(headers) &&
  !/json|protobuf/i.test(headers.get('content-type') ?? '')

/**
 * Whether an API server lags behind the requested version: it waits for that version, and then
 * answers 504 (apiserver pkg/storage/errors.go, NewTooLargeResourceVersionError). Another one may
 * be ahead of it.
 */
function isBehind({ status }: UpstreamReply, { method, url }: Exchange): boolean {
  if (status !== 504 || method !== 'GET') return false
  const [, query] = url.split('?', 2)
  return !['', '0'].includes(new URLSearchParams(query).get('resourceVersion') ?? '')
}

/** Cancels an answer that has no reader. */
export function discard(reply: UpstreamReply): void {
  if (reply.kind === 'body') return
  const giveUp = reply.source({
    write: () => true,
    drained: () => Promise.resolve(),
    end: () => undefined,
    fail: () => undefined,
  })
  giveUp()
}

/**
 * Each upstream once. A single one is tried twice where the request may be repeated: the first
 * failure may only mean that it closed an idle connection while the request was being sent.
 */
function attempts(candidates: readonly Upstream[], repeatable: boolean): readonly Upstream[] {
  const [only] = candidates
  return repeatable && only && candidates.length === 1 ? [only, only] : candidates
}

/** The span of one request to an API server, until the head of the answer. */
export function attemptSpan({ span, method }: Exchange, origin: string): Span | undefined {
  if (!span) return undefined
  const { hostname, port, protocol } = new URL(origin)
  return span.child(method, 'client', {
    'http.request.method': method,
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  })
}

/** The code of the innermost cause that has one: that of a `NoAnswer` names no cause. */
function firstCause(error: unknown): string {
  let code = 'UNKNOWN'
  for (let each = error; each instanceof Error; each = each.cause) {
    const own = (each as NodeJS.ErrnoException).code
    if (typeof own === 'string') code = own
  }
  return code
}

/**
 * The client's header fields as the hub sends them upstream, for requests of every kind. It drops
 * hop-by-hop fields and fields that only a proxy may set; with the node's credentials also
 * impersonation and the client's Authorization, which the node's replaces. The fields of a trace
 * pass unchanged, unless the hub records it: then they name `span`.
 */
export function outgoingHeaders(
  { headers, credential }: Exchange,
  host: string,
  connections: Pick<Connections, 'authorization'>,
  span: Span | undefined,
): HeaderList {
  const byNode = credential === 'node'
  const named = namedByConnection(headers)
  const raw: string[] = []
  for (let i = 0; i < headers.raw.length; i += 2) {
    const name = headers.raw[i] ?? ''
    if (isHopByHop(name, named) || isDropped(name, byNode, span !== undefined)) continue
    raw.push(name, headers.raw[i + 1] ?? '')
  }
  raw.push('Host', host)
  if (span) for (const field of span.contextFields) raw.push(...field)
  const authorization = byNode ? connections.authorization('node') : undefined
  if (authorization !== undefined) raw.push('Authorization', authorization)
  return new HeaderList(raw)
}

/** `A` to `Z`, and `a` to `z`, but for their case. */
const letter = (name: string): string => String.fromCharCode(name.charCodeAt(0) | 0x20)

function isDropped(field: string, byNode: boolean, traced: boolean): boolean {
  switch (letter(field)) {
    case 'h':
      return field.length === 4 && field.toLowerCase() === 'host'
    case 'e':
      return field.length === 6 && field.toLowerCase() === 'expect'
    case 'x':
      return /^x-(?:remote|forwarded)-/i.test(field)
    case 't':
      return traced && /^trace(?:parent|state)$/i.test(field)
    case 'i':
      return byNode && /^impersonate-/i.test(field)
    case 'a':
      return byNode && field.toLowerCase() === 'authorization'
    default:
      return false
  }
}
