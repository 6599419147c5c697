import type { Dispatcher } from 'undici'
import { onAbort } from '../../base/abort.ts'
import { elapsed } from '../../base/clock.ts'
import type { Connections } from '../../http/client/connections.ts'
import type { Exchange, UpstreamReply } from '../../http/exchange/exchange.ts'
import { endToEnd, HeaderList } from '../../http/exchange/headers.ts'
import { NotConnected, StreamRefused } from '../../http/client/wire-error.ts'
import { isLongRunning, isObjectRead, isRelayed, isWatch } from '../../api/request/request-info.ts'
import type { Traffic } from '../../metrics/metrics.ts'
import { rawStrings, UpstreamBody, type BodyReader } from './upstream-body.ts'
import { UpstreamGone, type UnderWay, type Upstream, type Waiting } from './upstream.ts'
import { Readable } from 'node:stream'
import { asBuffer } from '../../base/bytes.ts'

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
          body: exchange.content ?? (exchange.body ? attemptBody(exchange.body) : null),
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
class Attempt implements Dispatcher.DispatchHandler, UnderWay, Waiting, BodyReader {
  readonly #outgoing: Outgoing
  readonly #upstream: Upstream
  readonly #resolve: (reply: UpstreamReply) => void
  readonly #reject: (cause: NoAnswer) => void
  readonly #client: Disposable | undefined
  /** By the clock of `elapsed`: when the upstream is probed, and when what is held is passed on. */
  #doubtAt: number
  #heldUntil = Infinity
  readonly #body = new UpstreamBody(this)
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
    this.#body.data(chunk, controller)
    if (this.#state === 'held' && this.#body.early > heldBytes) this.#answer()
  }

  #received(bytes: number): void {
    const { traffic, exchange } = this.#outgoing
    this.#upstream.receivedAt = elapsed()
    traffic.receivedBytes += bytes
    exchange.follower?.received(bytes)
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    const trailers = rawStrings(controller.rawTrailers)
    this.#body.end(trailers)
    if (this.#state === 'held') this.#answer(trailers.length === 0 ? this.#body.whole : undefined)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#state === 'answered') {
      // A pod or a kubelet may have answered: that it breaks off is no fault of the API server.
      const isOwn = !isRelayed(this.#outgoing.exchange.info)
      if (!this.#isStopped && !this.#body.isOver && isOwn) this.#upstream.broken()
      return this.#body.fail(error)
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
        source: (sink) => this.#body.attach(sink, controller),
      })
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
    this.over()
    this.#reject(new NoAnswer(this.#upstream, sent, cause))
  }

  over(): void {
    this.#client?.[Symbol.dispose]()
    this.#upstream.underWay.delete(this)
  }
}

/**
 * A separate stream with the bytes of `body`, for one attempt. undici destroys a request's body
 * when the request ends; with the client's own stream it would destroy the client's connection,
 * and the next attempt would have no body.
 */
function attemptBody(body: Readable): Readable {
  let begun = false
  const copy = new Readable({
    read: () => {
      // An empty body may end before the first read.
      if (body.readableEnded) {
        if (body.readableDidRead) copy.destroy(new Error('an earlier attempt has read the body'))
        else copy.push(null)
        return
      }
      if (!begun) body.on('data', onData).on('end', onEnd).on('close', onClose)
      begun = true
      body.resume()
    },
    destroy: (cause, done) => {
      body.off('data', onData).off('end', onEnd).off('close', onClose)
      done(cause)
    },
  })
  // undici reads the length of the body of a request that was cancelled in its queue, and listens
  // to no error of it.
  copy.on('error', () => undefined)
  const onData = (chunk: Buffer): void => {
    if (!copy.push(chunk)) body.pause()
  }
  const onEnd = (): void => {
    body.off('close', onClose)
    copy.push(null)
  }
  const onClose = (): void => {
    copy.destroy(new Error('the client stopped sending the body'))
  }
  return copy
}

/** The answers of an API server that drains are shorter. */
const mostBytes = 1_024

/**
 * Whether an API server refused the request because it shuts down, so that the client retries at
 * another. It does so in one of two texts, both with Retry-After (apiserver pkg/server/filters): a
 * Status with 503 while it waits for requests in flight (waitgroup.go), or plain text with 429
 * where it runs with --shutdown-send-retry-after (with_retry_after.go). Both filters run before
 * authentication, so that neither answer has the flow schema header that every later answer
 * carries; a 503 or 429 with that header, or with another text, is an ordinary answer. False for a
 * reply whose body has not arrived whole.
 */
export function isDraining(reply: UpstreamReply): boolean {
  const { status, headers } = reply
  if (status !== 503 && status !== 429) return false
  const text = texts[status]
  if (headers.get('retry-after') === undefined) return false
  if (headers.get('x-kubernetes-pf-flowschema-uid') !== undefined) return false
  if (reply.kind !== 'body' || reply.body.byteLength > mostBytes) return false
  return asBuffer(reply.body).includes(text)
}

const texts = {
  503: '"message":"apiserver is shutting down"',
  429: 'The apiserver is shutting down, please try again later.',
} as const
