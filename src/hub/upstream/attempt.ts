import type { Dispatcher } from 'undici'
import { onAbort, type AbortSignalLike } from '../../base/abort.ts'
import { after } from '../../base/clock.ts'
import type { Connections } from '../../http/client/connections.ts'
import type { BytesReply, Credential, Exchange } from '../../http/exchange/exchange.ts'
import { endToEnd, HeaderList } from '../../http/exchange/headers.ts'
import { NotConnected, StreamRefused } from '../../http/client/wire-error.ts'
import { isLongRunning, isObjectRead, isRelayed, isWatch } from '../../api/request/request-info.ts'
import { attemptBody } from './attempt-body.ts'
import { rawStrings, UpstreamBody } from './upstream-body.ts'
import { UpstreamGone, type Upstream } from './upstream.ts'

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

/** The request as the hub sends it upstream. */
interface Outgoing {
  readonly exchange: Exchange
  readonly credential: Credential
  readonly url: string
  readonly headers: HeaderList
  /**
   * Whether the request may be sent twice. If so, its answer is held until it is whole, for at most
   * `heldBytes` and a time, so that the request can be retried when the answer breaks off or its
   * upstream becomes unresponsive. Answers to long-running requests are not held, unless they are
   * failures.
   */
  readonly repeatable: boolean
}

/** The head of an upstream's answer, and its body to come. */
export interface UpstreamReply extends BytesReply {
  /** The body, where all of it has arrived and no sink is attached: as a rule in a held answer. */
  readonly whole: () => Buffer | undefined
}

/** The limit of a held answer. */
const heldBytes = 64 * 1024

/**
 * How long an answer is held. An object or a list is of use to its client only when it is whole, so
 * it is held for longer than it takes to find out that its upstream is unresponsive; what else
 * comes slowly may be a stream.
 */
const heldMs = { objects: 10_000, other: 250 }

/**
 * Sends the request to one upstream and resolves with the head of its answer, whatever its code.
 * Rejects with `NoAnswer` where no answer comes, or where `giveUp` aborts before one does; a
 * request that is not repeatable is given up only while it has not been sent. After the head
 * `giveUp` has no effect. The sink fails when the client disconnects or the upstream becomes
 * unhealthy; but a watch at an upstream that was removed from the configuration ends cleanly.
 */
export function attempt(
  outgoing: Outgoing,
  upstream: Upstream,
  connections: Connections,
  giveUp?: AbortSignalLike,
): Promise<UpstreamReply> {
  return new Promise((resolve, reject) => {
    const { exchange, credential, url, headers } = outgoing
    const handler = new Attempt(outgoing, upstream, giveUp, resolve, reject)
    try {
      connections.dispatch(
        credential,
        upstream.origin,
        {
          method: exchange.method,
          path: url,
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
class Attempt implements Dispatcher.DispatchHandler {
  readonly #upstream: Upstream
  readonly #repeatable: boolean
  readonly #onSent: (() => void) | undefined
  readonly #onReceived: (() => void) | undefined
  readonly #lasts: boolean
  readonly #heldMs: number
  readonly #watch: boolean
  readonly #resolve: (reply: UpstreamReply) => void
  readonly #reject: (cause: NoAnswer) => void
  #links: readonly Disposable[] = []
  #giveUpLink: Disposable | undefined
  readonly #body = new UpstreamBody(() => this.#releaseLinks())
  #state: 'connecting' | 'sent' | 'held' | 'answered' | 'failed' = 'connecting'
  #controller: Dispatcher.DispatchController | undefined
  #reply: UpstreamReply | undefined
  #hold: Disposable | undefined
  /** The hub ends the request. */
  #isStopped = false
  /**
   * The answer may come from a pod or a kubelet; that it breaks off is no fault of the API server.
   */
  readonly #isRelayed: boolean

  constructor(
    { exchange, repeatable }: Outgoing,
    upstream: Upstream,
    giveUp: AbortSignalLike | undefined,
    resolve: (reply: UpstreamReply) => void,
    reject: (cause: NoAnswer) => void,
  ) {
    this.#upstream = upstream
    this.#repeatable = repeatable
    this.#onSent = exchange.onSent
    this.#onReceived = exchange.onReceived
    this.#lasts = isLongRunning(exchange.info)
    this.#heldMs = isObjectRead(exchange.info) ? heldMs.objects : heldMs.other
    this.#watch = isWatch(exchange.info)
    this.#isRelayed = isRelayed(exchange.info)
    this.#resolve = resolve
    this.#reject = reject
    const stop = (signal: AbortSignalLike): Disposable =>
      onAbort(signal, () => this.#stop(signal.reason))
    this.#giveUpLink = giveUp && onAbort(giveUp, () => this.#giveUp(giveUp.reason))
    this.#links = [stop(exchange.signal), stop(upstream.gone)]
    // One of the signals may have aborted before.
    if (this.#state === 'failed') this.#release()
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
    this.#onSent?.()
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    this.#received()
    if (status < 200) return
    const headers = new HeaderList(rawStrings(controller.rawHeaders))
    if (hasUnknownFraming(headers)) return controller.abort(new UnknownFraming())
    this.#reply = {
      kind: 'bytes',
      from: 'cloud',
      status,
      headers: endToEnd(headers),
      source: (sink) => this.#body.attach(sink, controller),
      whole: () => this.#body.whole,
    }
    // The Status that refuses a watch is short as well.
    const isHeld = this.#repeatable && (status >= 400 || !this.#lasts)
    if (!isHeld) return this.#answer()
    this.#state = 'held'
    this.#hold = after(this.#heldMs, () => this.#answer())
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#received()
    this.#body.data(chunk, controller)
    if (this.#state === 'held' && this.#body.early > heldBytes) this.#answer()
  }

  #received(): void {
    this.#upstream.received()
    this.#onReceived?.()
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#body.end(rawStrings(controller.rawTrailers))
    if (this.#state === 'held') this.#answer()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#state === 'answered') {
      if (!this.#isStopped && !this.#body.isOver && !this.#isRelayed) this.#upstream.broken()
      return this.#body.fail(error)
    }
    const isProcessed = !(error instanceof NotConnected || error instanceof StreamRefused)
    this.#fail(this.#state !== 'connecting' && isProcessed, error)
  }

  #answer(): void {
    if (this.#state === 'failed' || this.#reply === undefined) return
    this.#state = 'answered'
    this.#endPatience()
    this.#resolve(this.#reply)
  }

  #giveUp(reason: unknown): void {
    if (this.#repeatable || this.#state === 'connecting') this.#stop(reason)
  }

  #stop(reason: unknown): void {
    this.#isStopped = true
    // undici does not abort a request whose connection is still being made.
    if (this.#state === 'connecting') return this.#fail(false, reason)
    if (
      this.#watch &&
      this.#state === 'answered' &&
      reason instanceof UpstreamGone &&
      reason.removed
    ) {
      this.#body.end([])
    }
    this.#controller?.abort(
      reason instanceof Error ? reason : new Error('given up', { cause: reason }),
    )
  }

  #fail(sent: boolean, cause: unknown): void {
    if (this.#state === 'failed' || this.#state === 'answered') return
    this.#state = 'failed'
    this.#release()
    this.#reject(new NoAnswer(this.#upstream, sent, cause))
  }

  #release(): void {
    this.#endPatience()
    this.#releaseLinks()
  }

  #endPatience(): void {
    this.#giveUpLink?.[Symbol.dispose]()
    this.#hold?.[Symbol.dispose]()
  }

  #releaseLinks(): void {
    for (const link of this.#links) link[Symbol.dispose]()
  }
}
