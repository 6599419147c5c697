import { LightAbort } from '../../base/abort.ts'
import { after, elapsed } from '../../base/clock.ts'
import type { Connections } from '../../http/client/connections.ts'
import type { BytesReply, Exchange } from '../../http/exchange/exchange.ts'
import { areApiServers } from '../../http/exchange/headers.ts'
import { attempt, NoAnswer, type UpstreamReply } from './attempt.ts'
import type { Cloud } from './cloud.ts'
import { isRelayed } from '../../api/request/request-info.ts'
import { isLeaving } from './leaving.ts'
import { outgoingHeaders } from './outgoing-headers.ts'
import type { Upstream } from './upstream.ts'

/** No upstream answered; the cache may. */
export class Unreachable extends Error {
  readonly code = 'UNREACHABLE'
  /** False where no upstream can have seen the request. */
  readonly sent: boolean
  constructor(sent: boolean, cause?: unknown) {
    super('no API server can be reached', { cause })
    this.sent = sent
  }
}

/**
 * An API server has answered 401 to the hub's own credentials: the fault is the hub's, and no
 * answer for the caller.
 */
export class CredentialsRefused extends Error {
  readonly code = 'CREDENTIALS_REFUSED'
  constructor(origin: string) {
    super(`${origin} does not accept the hub's credentials (401)`)
  }
}

export interface ForwardOptions {
  /** `ms`: from the request to the head of the answer, or to the failure. */
  readonly onOutcome: (origin: string, outcome: 'answered' | 'failed', ms: number) => void
}

/**
 * Codes that an API server answers with only once it has accepted a caller's credentials, beside
 * successes.
 */
const behindAuthentication = new Set([403, 404, 409])

/** After how long without an answer the upstream of a request is probed. */
const silenceMs = 1_000

/** How long that probe may take before the next upstream is asked. */
const patienceMs = 800

/** Neither a request nor a probe was answered. */
class Silence extends Error {
  readonly code = 'SILENCE'
  constructor(origin: string) {
    super(`${origin} is silent, to a probe too`)
  }
}

/** Something between here and the API server answered in its place. */
class GatewayAnswer extends Error {
  readonly code = 'GATEWAY_ANSWER'
  constructor(origin: string, status: number) {
    super(`a gateway before ${origin} answered ${status}`)
  }
}

export type Forward = (exchange: Exchange, options: ForwardOptions) => Promise<BytesReply>

/**
 * Sends a request upstream and resolves with the head of the answer. A read goes on to the next
 * upstream when one gives no answer, or a gateway answers in its place; a write only where the
 * first upstream provably never saw it. A read also goes on when an API server lags behind the
 * version asked for, or is being stopped; the last such answer is passed on where nobody has a
 * better one. Rejects with `Unreachable` when no upstream is left to ask, and with
 * `CredentialsRefused` where the hub's own credentials are refused.
 */
export function forwarder(cloud: Cloud, connections: Connections): Forward {
  return async (exchange, options) => {
    const repeatable = exchange.method === 'GET' || exchange.method === 'HEAD'
    let failure: NoAnswer | undefined
    let sent = false
    let fallback: { reply: BytesReply; upstream: Upstream } | undefined
    for (const upstream of tries(cloud.candidates(exchange), repeatable)) {
      exchange.signal.throwIfAborted()
      // It may have become unhealthy since the list was made.
      if (upstream.tenure.aborted) continue
      // A second try helps against a broken connection, not where the upstream itself is silent,
      // lags or is being stopped.
      if (failure?.cause instanceof Silence && failure.upstream === upstream) continue
      if (fallback?.upstream === upstream) continue
      const began = elapsed()
      try {
        const reply = await patiently(exchange, upstream, connections, repeatable)
        const gateways = isGateways(reply)
        if (repeatable && gateways) {
          discard(reply)
          throw new NoAnswer(upstream, true, new GatewayAnswer(upstream.origin, reply.status))
        }
        const leaving = repeatable && isLeaving(reply)
        if (gateways || leaving) upstream.failed(began)
        else upstream.answered()
        options.onOutcome(upstream.origin, 'answered', elapsed() - began)
        if (exchange.credential === 'node' && refusesNode(reply, exchange, upstream, began)) {
          discard(reply)
          throw new CredentialsRefused(upstream.origin)
        }
        if (fallback) discard(fallback.reply)
        if (!leaving && !isBehind(reply, exchange)) return reply
        fallback = { reply, upstream }
      } catch (error) {
        if (!(error instanceof NoAnswer) || exchange.signal.aborted) throw error
        failure = error
        sent ||= error.sent
        options.onOutcome(upstream.origin, 'failed', elapsed() - began)
        upstream.failed(began)
        if (!repeatable && error.sent) break
        if (isSpent(exchange)) break
      }
    }
    if (fallback) return fallback.reply
    throw new Unreachable(sent, failure)
  }
}

/**
 * Whether the API server does not accept the hub's own credentials; tells the upstream what it made
 * of them.
 */
function refusesNode(
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

/** Whether what was already read of the body cannot be sent again. */
export const isSpent = ({ body, content }: Exchange): boolean =>
  content === undefined && body?.readableDidRead === true

/**
 * Whether a gateway gave the answer: a 502 to 504 without the marks of an API server, which also
 * tells of failures in a Status.
 */
const isGateways = ({ status, headers }: BytesReply): boolean =>
  status >= 502 &&
  status <= 504 &&
  !areApiServers(headers) &&
  !/json|protobuf/i.test(headers.get('content-type') ?? '')

/**
 * Whether an API server lags behind the version asked for: it waits for that version, and then
 * answers 504 (apiserver pkg/storage/errors.go, NewTooLargeResourceVersionError). Another may have
 * come further.
 */
function isBehind({ status }: BytesReply, { method, url }: Exchange): boolean {
  if (status !== 504 || method !== 'GET') return false
  const [, query] = url.split('?', 2)
  return !['', '0'].includes(new URLSearchParams(query).get('resourceVersion') ?? '')
}

/** Gives up an answer that nobody will read. */
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
 * Each upstream once. A lone one is tried twice where the request may be repeated: the first
 * failure may only mean that it closed an idle connection while the request was on its way.
 */
function tries(candidates: readonly Upstream[], repeatable: boolean): readonly Upstream[] {
  return repeatable && candidates.length === 1 ? [...candidates, ...candidates] : candidates
}

/**
 * One attempt. A slow answer is no failure; but after each second without one the upstream is
 * probed on a fresh connection. Where the probe is not answered either, all requests that wait for
 * this upstream and may be repeated, or were not sent yet, are given up at once; later ones have it
 * probed without waiting for a second.
 */
async function patiently(
  exchange: Exchange,
  upstream: Upstream,
  connections: Connections,
  repeatable: boolean,
): Promise<UpstreamReply> {
  const giveUp = new LightAbort()
  const silent = (): void => giveUp.abort(new Silence(upstream.origin))
  using _others = upstream.onSilence(silent)
  using _silence = eachSilence(upstream.silent ? 0 : silenceMs, async () => {
    if (!(await upstream.answersWithin(patienceMs))) silent()
  })
  return await attempt(
    {
      exchange,
      credential: exchange.credential,
      url: exchange.url,
      headers: outgoingHeaders(exchange, upstream.host, connections),
      repeatable,
    },
    upstream,
    connections,
    giveUp.signal,
  )
}

/**
 * Calls `act` after `firstMs`, and again `silenceMs` after each call has settled, until disposed.
 */
function eachSilence(firstMs: number, act: () => Promise<void>): Disposable {
  let over = false
  let next: Disposable | undefined
  const wait = (ms: number): void => {
    if (over) return
    next = after(ms, () => void act().then(() => wait(silenceMs)))
  }
  wait(firstMs)
  return {
    [Symbol.dispose]: () => {
      over = true
      next?.[Symbol.dispose]()
    },
  }
}
