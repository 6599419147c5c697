import { elapsed } from '../../base/clock.ts'
import type { Connections } from '../../http/client/connections.ts'
import type { BytesReply, Exchange } from '../../http/exchange/exchange.ts'
import { isFromApiServer, HeaderList, hopByHopIn } from '../../http/exchange/headers.ts'
import { attempt, NoAnswer, Unresponsive, type Outgoing, type UpstreamReply } from './attempt.ts'
import type { Cloud } from './cloud.ts'
import { isRelayed } from '../../api/request/request-info.ts'
import { isDraining } from './draining.ts'
import type { Upstream } from './upstream.ts'
import type { Span } from '../../tracing/span.ts'

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

export type Forward = (exchange: Exchange, options: ForwardOptions) => Promise<BytesReply>

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
  return async (exchange, options) => {
    // Without an identity the request would be anonymous, and its answer not the node's.
    if (exchange.credential === 'node' && connections.credentials.awaited)
      throw new CredentialsRefused()
    const repeatable = exchange.method === 'GET' || exchange.method === 'HEAD'
    let failure: NoAnswer | undefined
    let sent = false
    let fallback: { reply: BytesReply; upstream: Upstream } | undefined
    let refusal: { error: CredentialsRefused; upstream: Upstream } | undefined
    for (const upstream of attempts(cloud.attemptOrder(exchange), repeatable)) {
      exchange.signal.throwIfAborted()
      // It may have become unhealthy since the list was made.
      if (upstream.isGone) continue
      // A second attempt helps against a broken connection, not where the upstream itself is
      // unresponsive, lags or drains.
      if (failure?.cause instanceof Unresponsive && failure.upstream === upstream) continue
      if (fallback?.upstream === upstream || refusal?.upstream === upstream) continue
      const began = elapsed()
      try {
        const request = { exchange, repeatable, traffic: trafficOf(exchange) }
        const reply = await attemptAt(upstream, request, connections, cloud, options)
        const isGateways = isOfGateway(reply)
        if (repeatable && isGateways) {
          discard(reply)
          throw new NoAnswer(upstream, true, new GatewayAnswer(upstream.origin, reply.status))
        }
        const drains = repeatable && isDraining(reply)
        // It waited for etcd, or for a webhook, in vain.
        const ranOut =
          reply.status === 504 && !isBehind(reply, exchange) && !isRelayed(exchange.info)
        if (isGateways || drains || ranOut) upstream.failed(began)
        else upstream.answered()
        options.onOutcome(upstream.origin, 'answered', elapsed() - began)
        if (exchange.credential === 'node' && refusesHub(reply, exchange, upstream, began)) {
          // It has not acted on the request.
          discard(reply)
          refusal = { upstream, error: new CredentialsRefused(upstream.origin) }
          if (isBodyConsumed(exchange)) break
          continue
        }
        if (fallback) discard(fallback.reply)
        const isStarting = startRefusals.has(reply.status) && upstream.isStarting
        const answer: BytesReply = isStarting ? { ...reply, isStarting } : reply
        const isProvisional = drains || isBehind(reply, exchange) || (isStarting && repeatable)
        if (!isProvisional) return answer
        fallback = { reply: answer, upstream }
      } catch (error) {
        if (!(error instanceof NoAnswer) || exchange.signal.aborted) throw error
        failure = error
        sent ||= error.sent
        options.onOutcome(upstream.origin, 'failed', elapsed() - began)
        upstream.failed(began)
        if (!repeatable && error.sent) break
        if (isBodyConsumed(exchange)) break
      }
    }
    if (fallback) return fallback.reply
    // A write that another one may have received is not answered as one that none has.
    if (refusal && (repeatable || !sent)) throw refusal.error
    throw new Unreachable(sent, failure)
  }
}

/** Whether the API server refuses the hub's own credentials; notes that at the upstream. */
function refusesHub(
  { status }: BytesReply,
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
const isOfGateway = ({ status, headers }: BytesReply): boolean =>
  status >= 502 &&
  status <= 504 &&
  !isFromApiServer(headers) &&
  !/json|protobuf/i.test(headers.get('content-type') ?? '')

/**
 * Whether an API server lags behind the requested version: it waits for that version, and then
 * answers 504 (apiserver pkg/storage/errors.go, NewTooLargeResourceVersionError). Another one may
 * be ahead of it.
 */
function isBehind({ status }: BytesReply, { method, url }: Exchange): boolean {
  if (status !== 504 || method !== 'GET') return false
  const [, query] = url.split('?', 2)
  return !['', '0'].includes(new URLSearchParams(query).get('resourceVersion') ?? '')
}

/** Cancels an answer that has no reader. */
export function discard({ source }: BytesReply): void {
  const giveUp = source({
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

/**
 * One attempt. It is in vain where the upstream is not ready, as without its etcd, and another one
 * is, or the caller has another answer.
 */
function attemptAt(
  upstream: Upstream,
  request: Pick<Outgoing, 'exchange' | 'repeatable' | 'traffic'>,
  connections: Connections,
  { upstreams }: Cloud,
  { insteadOfWaiting }: ForwardOptions,
): Promise<UpstreamReply> {
  const { exchange } = request
  const span = attemptSpan(exchange, upstream.origin)
  const headers = outgoingHeaders(exchange, upstream.host, connections, span)
  const isInVain = async (): Promise<boolean> =>
    upstream.health === 'unready' &&
    (upstreams.some(({ availability }) => availability === 'ready') ||
      (await insteadOfWaiting?.()) === true)
  const answer = attempt({ ...request, headers, isInVain }, upstream, connections)
  if (span)
    answer.then(
      ({ status }) => endAttempt(span, status),
      (cause: unknown) => failAttempt(span, cause),
    )
  return answer
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

/** Ends it with the status of the answer; 0: the connection ended before. */
export function endAttempt(span: Span | undefined, status: number): void {
  if (status === 0) return span?.end('closed')
  span?.set({ 'http.response.status_code': status })
  span?.end(status >= 400 ? String(status) : undefined)
}

/** Ends it without an answer; `cause` is a `NoAnswer`. */
function failAttempt(span: Span | undefined, cause: unknown): void {
  span?.end(firstCause(cause))
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
  const isHopByHop = hopByHopIn(headers)
  const passed = headers.without(
    (name) =>
      isHopByHop(name) ||
      name === 'host' ||
      name === 'expect' ||
      name.startsWith('x-remote-') ||
      name.startsWith('x-forwarded-') ||
      (span !== undefined && (name === 'traceparent' || name === 'tracestate')) ||
      (byNode && (name.startsWith('impersonate-') || name === 'authorization')),
  )
  const raw = [...passed.raw, 'Host', host]
  if (span) for (const field of span.contextFields) raw.push(...field)
  const authorization = byNode ? connections.authorization('node') : undefined
  if (authorization !== undefined) raw.push('Authorization', authorization)
  return new HeaderList(raw)
}
