import type { Dispatcher } from 'undici'
import { onAbort } from '../../base/abort.ts'
import { joined } from '../../base/bytes.ts'
import { elapsed } from '../../base/clock.ts'
import type { Connections } from '../../http/client/connections.ts'
import type { Exchange, Sink, UpstreamReply } from '../../http/exchange/exchange.ts'
import { endToEnd, HeaderList } from '../../http/exchange/headers.ts'
import { NotConnected, StreamRefused } from '../../http/client/wire-error.ts'
import { isLongRunning, isObjectRead, isRelayed, isWatch } from '../../api/request/request-info.ts'
import type { Traffic } from '../../metrics/metrics.ts'
import { bodyCopy } from './body-copy.ts'
import { UpstreamGone, type UnderWay, type Upstream, type Waiting } from './upstream.ts'

/** An upstream gave no answer. `sent` is false where it provably never received the request. */
export class NoAnswer extends Error {
  readonly code = 'NO_ANSWER'
  readonly upstream: Upstream
  readonly sent: boolean
  constructor(upstream: Upstream, sent: boolean, cause: unknown) {
    super(`${upstream.origin} gave no answer`, { cause })
    this.upstream = upstream
    this.sent = sent
  }
}

/** An upstream answered neither a request nor a probe. */
export class Unresponsive extends Error {
  readonly code = 'UNRESPONSIVE'
  constructor(origin: string) {
    super(`${origin} answers neither the request nor a probe`)
  }
}

/** The request as the hub sends it upstream. */
export interface Outgoing {
  readonly exchange: Exchange
  readonly headers: HeaderList
  /**
   * Whether the request may be sent twice. If so, its answer is held until it is whole, for at most
   * `heldBytes` and a time, so that the request can be retried when the answer breaks off or its
   * upstream becomes unresponsive. Answers to long-running requests are not held, unless they are
   * failures.
   */
  readonly repeatable: boolean
  /** Whether it is of no use to wait longer for the answer. It does not reject. */
  isInVain(): Promise<boolean>
  /** Where the bytes of the answer are counted. */
  readonly traffic: Pick<Traffic, 'receivedBytes'>
}

/** The limit of a held answer. */
const heldBytes = 64 * 1024

/** How much of an answer may wait for its sink before the upstream's stream is paused. */
export const unattachedBytes = 256 * 1024

/**
 * How long an answer is held. An object or a list is of use to its client only when it is whole, so
 * it is held for longer than it takes to find out that its upstream is unresponsive; what else
 * comes slowly may be a stream.
 */
const heldMs = { objects: 10_000, other: 250 }

/** After so long without an answer to a request its upstream is probed. */
const unansweredMs = 1_000

/** How long that probe may take before the request is given up. */
const probeTimeoutMs = 800

/**
 * Sends the request to one upstream and resolves with the head of its answer, whatever its code.
 * Rejects with `NoAnswer` where no answer comes. The sink fails when the client disconnects, or the
 * upstream becomes unhealthy or is removed from the configuration.
 *
 * A slow answer is no failure; but after each second without one the upstream is probed on a fresh
 * connection. Where that probe has no answer either, all requests that wait for this upstream and
 * may be repeated, or were not sent yet, are given up at once; for later requests it is probed
 * without the wait of a second. So is such a request that waits in vain.
 */
export function attempt(
  outgoing: Outgoing,
  upstream: Upstream,
  connections: Connections,
): Promise<UpstreamReply> {
  return new Promise((resolve, reject) => {
    const { exchange, headers } = outgoing
    const handler = new Attempt(outgoing, upstream, resolve, reject)
    try {
      connections.dispatch(
        exchange.credential,
        upstream.origin,
        {
          method: exchange.method,
          path: exchange.url,
          // undici does not change it.
          headers: headers.raw as string[],
          body: exchange.content ?? (exchange.body ? bodyCopy(exchange.body) : null),
          isWatch: isWatch(exchange.info),
        },
        handler,
      )
    } catch (error) {
      handler.refused(error)
    }
  })
}

/** Readers may disagree about where such an answer ends: request smuggling. */
class UnknownFraming extends Error {
  readonly code = 'UNKNOWN_FRAMING'
  constructor() {
    super('the answer has a transfer coding other than `chunked`')
  }
}

/**
 * undici takes any coding that ends with the word for `chunked`. No API server sends another one
 * (RFC 9112 section 6.1).
 */
const hasUnknownFraming = (headers: HeaderList): boolean =>
  headers.has('transfer-encoding') &&
  headers.all('transfer-encoding').some((coding) => coding.trim().toLowerCase() !== 'chunked')

/**
 * One attempt, as a handler of undici. Its states:
 *
 * - connecting -> sent: there is a connection, on which the request is written in the same turn
 * - sent -> held: the head of the answer has arrived, and its body is being collected
 * - sent or held -> answered: the answer has been passed on
 * - any but answered -> failed: rejected with `NoAnswer`
 */
class Attempt implements Dispatcher.DispatchHandler, UnderWay, Waiting {
  readonly #outgoing: Outgoing
  readonly #upstream: Upstream
  readonly #resolve: (reply: UpstreamReply) => void
  readonly #reject: (cause: NoAnswer) => void
  readonly #client: Disposable | undefined
  /** By the clock of `elapsed`: when the upstream is probed, and when what is held is passed on. */
  #doubtAt: number
  #heldUntil = Infinity
  /**
   * Bytes that came before there was a sink: to pause a connection that is being read costs more
   * than to hold the few.
   */
  #early: Uint8Array[] = []
  #earlyBytes = 0
  #sink: Sink | undefined
  #outcome: { readonly trailers: string[] } | { readonly error: Error } | undefined
  /** The sink has all of the body, or nothing reads it any more. */
  #isOver = false
  #state: 'connecting' | 'sent' | 'held' | 'answered' | 'failed' = 'connecting'
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #headers = new HeaderList()
  /** The hub ends the request. */
  #isStopped = false

  constructor(
    outgoing: Outgoing,
    upstream: Upstream,
    resolve: (reply: UpstreamReply) => void,
    reject: (cause: NoAnswer) => void,
  ) {
    this.#outgoing = outgoing
    this.#upstream = upstream
    this.#resolve = resolve
    this.#reject = reject
    const { signal } = outgoing.exchange
    this.#client = onAbort(signal, () => this.stop(signal.reason))
    this.#doubtAt = elapsed() + unansweredMs
    // The client may be gone already.
    if (this.#state === 'failed') return
    upstream.underWay.add(this)
    upstream.wait(this)
    if (upstream.isGone) this.stop(new UpstreamGone(upstream.origin))
    else if (upstream.unresponsive) void this.#doubt()
  }

  /** undici did not take the request. */
  refused(cause: unknown): void {
    this.#fail(false, cause)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#state === 'failed') controller.abort(new Error('given up'))
    this.#controller = controller
    if (this.#state !== 'connecting') return
    this.#state = 'sent'
    this.#outgoing.exchange.follower?.sent()
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    this.#received(0)
    if (status < 200) return
    const headers = new HeaderList(rawStrings(controller.rawHeaders))
    if (hasUnknownFraming(headers)) return controller.abort(new UnknownFraming())
    this.#status = status
    this.#headers = endToEnd(headers)
    const { repeatable, exchange } = this.#outgoing
    // The Status that refuses a watch is short as well.
    const isHeld = repeatable && (status >= 400 || !isLongRunning(exchange.info))
    if (!isHeld) return this.#answer()
    this.#state = 'held'
    this.#heldUntil = elapsed() + (isObjectRead(exchange.info) ? heldMs.objects : heldMs.other)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#received(chunk.byteLength)
    if (this.#isOver) return
    if (this.#sink) {
      if (!this.#sink.write(chunk)) this.#wait(this.#sink, controller)
      return
    }
    this.#early.push(chunk)
    this.#earlyBytes += chunk.byteLength
    if (this.#earlyBytes > unattachedBytes) controller.pause()
    if (this.#state === 'held' && this.#earlyBytes > heldBytes) this.#answer()
  }

  #received(bytes: number): void {
    const { traffic, exchange } = this.#outgoing
    this.#upstream.receivedAt = elapsed()
    traffic.receivedBytes += bytes
    exchange.follower?.received(bytes)
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    const trailers = rawStrings(controller.rawTrailers)
    this.#finish({ trailers })
    if (this.#state === 'held')
      this.#answer(trailers.length === 0 ? joined(this.#early) : undefined)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#state === 'answered') {
      // A pod or a kubelet may have answered: that it breaks off is no fault of the API server.
      const isOwn = !isRelayed(this.#outgoing.exchange.info)
      const isBroken = !this.#isStopped && !this.#isOver && this.#outcome === undefined
      if (isBroken && isOwn) this.#upstream.broken()
      return this.#finish({ error })
    }
    const isProcessed = !(error instanceof NotConnected || error instanceof StreamRefused)
    this.#fail(this.#state !== 'connecting' && isProcessed, error)
  }

  /** `body`: all of it, where it has arrived. */
  #answer(body?: Buffer): void {
    const controller = this.#controller
    if (this.#state === 'failed' || !controller) return
    this.#state = 'answered'
    this.#upstream.waitNoLonger(this)
    const head = {
      from: 'cloud',
      explanation: { upstream: this.#upstream.origin },
      status: this.#status,
      headers: this.#headers,
    } as const
    if (body) this.#resolve({ kind: 'body', ...head, body })
    else
      this.#resolve({
        kind: 'bytes',
        ...head,
        source: (sink) => this.#attach(sink, controller),
      })
  }

  #attach(sink: Sink, controller: Dispatcher.DispatchController): () => void {
    const early = this.#early
    this.#early = []
    this.#sink = sink
    const room = early.map((chunk) => sink.write(chunk)).at(-1) ?? true
    if (this.#outcome) this.#finish(this.#outcome)
    else if (!room) this.#wait(sink, controller)
    else if (controller.paused) controller.resume()
    return () => {
      if (this.#isOver) return
      this.#isOver = true
      controller.abort(new Error('the reader of the answer gave up'))
      this.#release()
    }
  }

  #wait(sink: Sink, controller: Dispatcher.DispatchController): void {
    controller.pause()
    void sink.drained().then(() => {
      if (!this.#isOver) controller.resume()
    })
  }

  #finish(outcome: { readonly trailers: string[] } | { readonly error: Error }): void {
    this.#outcome ??= outcome
    this.#release()
    if (this.#sink === undefined || this.#isOver) return
    this.#isOver = true
    if ('error' in this.#outcome) this.#sink.fail(this.#outcome.error)
    else this.#sink.end(this.#outcome.trailers)
  }

  check(at: number): void {
    if (at >= this.#heldUntil) this.#answer()
    else if (at >= this.#doubtAt) void this.#doubt()
  }

  async #doubt(): Promise<void> {
    this.#doubtAt = Infinity
    await this.#upstream.answersWithin(probeTimeoutMs)
    if (await this.#outgoing.isInVain()) this.giveUp()
    this.#doubtAt = elapsed() + unansweredMs
  }

  giveUp(): void {
    if (!this.#isAwaited) return
    if (this.#outgoing.repeatable || this.#state === 'connecting')
      this.stop(new Unresponsive(this.#upstream.origin))
  }

  get #isAwaited(): boolean {
    return this.#state !== 'answered' && this.#state !== 'failed'
  }

  stop(reason: unknown): void {
    this.#isStopped = true
    // undici does not abort a request whose connection is still being made.
    if (this.#state === 'connecting') return this.#fail(false, reason)
    this.#controller?.abort(
      reason instanceof Error ? reason : new Error('given up', { cause: reason }),
    )
  }

  #fail(sent: boolean, cause: unknown): void {
    if (this.#state === 'failed' || this.#state === 'answered') return
    this.#state = 'failed'
    this.#upstream.waitNoLonger(this)
    this.#release()
    this.#reject(new NoAnswer(this.#upstream, sent, cause))
  }

  #release(): void {
    this.#client?.[Symbol.dispose]()
    this.#upstream.underWay.delete(this)
  }
}

/** What `toString('latin1')` calls in the end; an answer has two dozen of them. */
type Latin1 = Buffer & { latin1Slice(): string }

/** Header fields or trailers as undici has them. */
function rawStrings(raw: unknown): string[] {
  if (!Array.isArray(raw)) return []
  const strings: string[] = []
  for (const part of raw as readonly unknown[])
    strings.push(part instanceof Buffer ? (part as Latin1).latin1Slice() : String(part))
  return strings
}
