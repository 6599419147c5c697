import { after, elapsed } from '../base/clock.ts'
import type { Connections } from '../client/connections.ts'
import type { BytesReply, Exchange } from '../exchange/exchange.ts'
import { attempt, NoAnswer, type UpstreamReply } from './attempt.ts'
import type { Cloud } from './cloud.ts'
import { isLeaving } from './leaving.ts'
import { outgoingHeaders } from './outgoing-headers.ts'
import type { Upstream } from './upstream.ts'

/** No upstream answered; what was asked may be answered from elsewhere. */
export class Unreachable extends Error {
  readonly code = 'UNREACHABLE'
  /** False where no upstream can have seen the request. */
  readonly sent: boolean
  constructor(sent: boolean, cause?: unknown) {
    super('no API server can be reached', { cause })
    this.sent = sent
  }
}

export interface ForwardOptions {
  readonly onOutcome: (origin: string, outcome: 'answered' | 'failed') => void
}

/** A request without an answer for so long has its upstream probed. */
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
 * Sends a request upstream and resolves with the head of the answer. What may be repeated (get, list, watch and their like) goes to the
 * next upstream when one gives no answer, or a gateway says that there is none; anything else only where the first provably never saw it.
 * An API server that has not come as far as the version asked for is passed over as well, and so is one that is being stopped; what the
 * last of these said is the answer where nobody has a better one. Rejects with `Unreachable` when nobody is left to ask.
 */
export function forwarder(cloud: Cloud, connections: Connections): Forward {
  return async (exchange, options) => {
    const repeatable = exchange.method === 'GET' || exchange.method === 'HEAD'
    let failure: NoAnswer | undefined
    let sent = false
    let fallback: { reply: BytesReply; upstream: Upstream } | undefined
    for (const upstream of tries(cloud.candidates(exchange), repeatable)) {
      exchange.signal.throwIfAborted()
      // A verdict may have fallen since the list was made.
      if (upstream.tenure.aborted) continue
      // Who is silent on a connection that works would be so on the next; who lags or leaves does so there too.
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
        options.onOutcome(upstream.origin, 'answered')
        if (fallback) discard(fallback.reply)
        if (!leaving && !isBehind(reply, exchange)) return reply
        fallback = { reply, upstream }
      } catch (error) {
        if (!(error instanceof NoAnswer) || exchange.signal.aborted) throw error
        failure = error
        sent ||= error.sent
        options.onOutcome(upstream.origin, 'failed')
        upstream.failed(began)
        if (!repeatable && error.sent) break
        if (exchange.body?.readableDidRead) break
      }
    }
    if (fallback) return fallback.reply
    throw new Unreachable(sent, failure)
  }
}

/**
 * A failure without the marks of an API server, which gives each of its answers an Audit-Id (apiserver pkg/endpoints/filters/audit_init.go)
 * and tells of failures in a Status.
 */
const isGateways = ({ status, headers }: BytesReply): boolean =>
  status >= 502 &&
  status <= 504 &&
  headers.get('audit-id') === undefined &&
  !/json|protobuf/i.test(headers.get('content-type') ?? '')

/**
 * Asked for a version that it has not seen, an API server waits for it, and then says 504 (apiserver pkg/storage/errors.go,
 * NewTooLargeResourceVersionError). Another may have come further.
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
 * Each upstream once; a lone one twice where the request may be repeated, as its first failure may be no more than an idle connection
 * that it closed while the request was on its way.
 */
function tries(candidates: readonly Upstream[], repeatable: boolean): readonly Upstream[] {
  return repeatable && candidates.length === 1 ? [...candidates, ...candidates] : candidates
}

/**
 * One attempt. Silence alone is no failure, a slow answer is an answer; but after a second of it, and of each further one, the upstream is
 * asked on a fresh connection whether it is there. Where that is silent too, what may be repeated or was not sent yet is given up, by all
 * who wait for this upstream: what one of them has found out the others need not wait for. Nor need whoever comes after them.
 */
async function patiently(
  exchange: Exchange,
  upstream: Upstream,
  connections: Connections,
  repeatable: boolean,
): Promise<UpstreamReply> {
  const giveUp = new AbortController()
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
      headers: outgoingHeaders(exchange, upstream.origin, connections),
      repeatable,
    },
    upstream,
    connections,
    giveUp.signal,
  )
}

/** Calls `act` after `firstMs`, and again `silenceMs` after each call has settled, until disposed. */
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
