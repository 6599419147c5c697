import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { follow, onAbort } from '../base/abort.ts'
import type { Connections } from '../client/connections.ts'
import type { BytesReply, Credential, Exchange, Sink } from '../exchange/exchange.ts'
import { endToEnd, HeaderList } from '../exchange/headers.ts'
import type { Upstream } from './upstream.ts'

/** An upstream gave no answer. `sent` is false where it provably never saw the request. */
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

/** What goes upstream: the request as it came, but for what the hub decides. */
export interface Outgoing {
  readonly exchange: Exchange
  readonly credential: Credential
  readonly url: string
  readonly headers: HeaderList
}

/** Failures of a connection that was never made: the request cannot have been seen. */
const neverSent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

/**
 * Sends the request to one upstream and resolves with the head of its answer, whatever its code. Rejects with `NoAnswer` where none
 * comes, or where `giveUp` aborts before. After the head, `giveUp` no longer counts, but the client's going and the end of the
 * upstream's tenure do: they fail the sink.
 */
export function attempt(
  { exchange, credential, url, headers }: Outgoing,
  upstream: Upstream,
  connections: Connections,
  giveUp?: AbortSignal,
): Promise<BytesReply> {
  return new Promise((resolve, reject) => {
    const abort = new AbortController()
    const links = [follow(exchange.signal, abort), follow(upstream.tenure, abort)]
    const patience = giveUp && follow(giveUp, abort)
    const body = new UpstreamBody(() => links.forEach((link) => link[Symbol.dispose]()))
    let answered = false
    let started = false
    const fail = (sent: boolean, cause: unknown): void => {
      links.forEach((link) => link[Symbol.dispose]())
      patience?.[Symbol.dispose]()
      reject(new NoAnswer(upstream, sent, cause))
    }
    // A connection still being made takes no notice of an abort: whoever waits for it is told at once.
    links.push(
      onAbort(abort.signal, () => {
        if (!started) fail(false, abort.signal.reason)
      }),
    )
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(controller) {
        started = true
        links.push(onAbort(abort.signal, () => controller.abort(asError(abort.signal.reason))))
      },
      onResponseStart(controller, status) {
        if (status < 200) return
        answered = true
        patience?.[Symbol.dispose]()
        resolve({
          kind: 'bytes',
          from: 'cloud',
          status,
          headers: endToEnd(new HeaderList(rawStrings(controller.rawHeaders))),
          source: (sink) => body.attach(sink, controller),
        })
      },
      onResponseData: (controller, chunk) => body.data(chunk, controller),
      onResponseEnd: (controller) => body.end(rawStrings(controller.rawTrailers)),
      onResponseError(_controller, error) {
        if (answered) return body.fail(error)
        const { code } = error as NodeJS.ErrnoException
        fail(code === undefined || !neverSent.has(code), error)
      },
    }
    try {
      connections.dispatch(
        credential,
        upstream.origin,
        {
          method: exchange.method,
          path: url,
          headers: [...headers.raw],
          body: exchange.body ? lent(exchange.body) : null,
        },
        handler,
      )
    } catch (error) {
      fail(false, error)
    }
  })
}

/**
 * The same bytes in a stream of their own. Whoever ends an attempt destroys the body it was given; this one belongs to the client, whose
 * connection would go with it, and to the next attempt.
 */
function lent(body: Readable): Readable {
  let begun = false
  const copy = new Readable({
    read: () => {
      if (!begun) body.on('data', onData).on('end', onEnd).on('close', onClose)
      begun = true
      body.resume()
    },
    destroy: (cause, done) => {
      body.off('data', onData).off('end', onEnd).off('close', onClose)
      done(cause)
    },
  })
  const onData = (chunk: Buffer): void => {
    if (!copy.push(chunk)) body.pause()
  }
  const onEnd = (): void => {
    body.off('close', onClose)
    copy.push(null)
  }
  const onClose = (): void => {
    copy.destroy(new Error('the client has stopped sending'))
  }
  return copy
}

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error('given up', { cause: reason })

function rawStrings(raw: unknown): string[] {
  if (!Array.isArray(raw)) return []
  return raw.map((part: unknown) =>
    Buffer.isBuffer(part) ? part.toString('latin1') : String(part),
  )
}

/** How much of an answer may wait for its sink before the upstream is told to stop. */
const unattachedBytes = 256 * 1024

/**
 * The body of an answer on its way to a sink. What comes before the sink is there waits here: pausing a connection in the middle of
 * what it has read costs more than holding the little that comes.
 */
class UpstreamBody {
  readonly #release: () => void
  #sink: Sink | undefined
  #early: Uint8Array[] = []
  #earlyBytes = 0
  #outcome: { trailers: string[] } | { error: Error } | undefined
  #over = false

  constructor(release: () => void) {
    this.#release = release
  }

  attach(sink: Sink, controller: Dispatcher.DispatchController): () => void {
    const early = this.#early
    this.#early = []
    this.#sink = sink
    const room = early.map((chunk) => sink.write(chunk)).at(-1) ?? true
    if (this.#outcome) this.#finish(this.#outcome)
    else if (!room) this.#wait(sink, controller)
    else if (controller.paused) controller.resume()
    return () => {
      if (this.#over) return
      this.#over = true
      this.#sink = undefined
      controller.abort(new Error('the rest is not wanted'))
      this.#release()
    }
  }

  data(chunk: Buffer, controller: Dispatcher.DispatchController): void {
    if (this.#over) return
    if (this.#sink === undefined) {
      this.#early.push(chunk)
      this.#earlyBytes += chunk.byteLength
      if (this.#earlyBytes > unattachedBytes) controller.pause()
      return
    }
    if (!this.#sink.write(chunk)) this.#wait(this.#sink, controller)
  }

  #wait(sink: Sink, controller: Dispatcher.DispatchController): void {
    controller.pause()
    void sink.drained().then(() => {
      if (!this.#over) controller.resume()
    })
  }

  end(trailers: string[]): void {
    this.#finish({ trailers })
  }

  fail(error: Error): void {
    this.#finish({ error })
  }

  #finish(outcome: { trailers: string[] } | { error: Error }): void {
    this.#outcome = outcome
    this.#release()
    if (this.#sink === undefined || this.#over) return
    this.#over = true
    if ('error' in outcome) this.#sink.fail(outcome.error)
    else this.#sink.end(outcome.trailers)
  }
}
