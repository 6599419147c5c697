import type { TLSSocket } from 'node:tls'
import type { buildConnector, Dispatcher, Pool } from 'undici'
import { elapsed, jitter, turn } from '../../base/clock.ts'
import type { Credentials } from '../../config/credentials.ts'
import { dialer } from './dial.ts'
import type { ConnectionTimings } from './connection-timings.ts'
import { Sessions } from './sessions.ts'
import { undici } from './undici.ts'
import { ConnectionsClosed } from './wire-error.ts'

export type Protocol = 'http/1.1' | 'h2'

/** A request as undici takes it. */
export type UpstreamRequest = Omit<Dispatcher.DispatchOptions, 'origin'> & {
  readonly isWatch?: boolean
}

/** undici's options for all connections over HTTP/1.1. */
export const http1Options = {
  allowH2: false,
  pipelining: 1,
  // Probes detect dead servers, not timers: an answer may be slow, and a watch silent for long.
  headersTimeout: 0,
  bodyTimeout: 0,
  maxHeaderSize: 64 * 1024,
} as const

/**
 * All connections to one server with the same credentials: an HTTP/1.1 pool, which is faster for
 * short requests, and HTTP/2 sessions for watches, of which a node has hundreds.
 */
export class ServerConnections {
  readonly #makePool: () => Pool
  #pool: Pool
  /** When the pool is old, by the clock of `elapsed`. */
  #renewAt = Infinity
  /** Take no new requests, and close with the last of theirs. */
  readonly #oldPools = new Set<Pool>()
  readonly #sessions: Sessions | undefined
  readonly #watches = new Set<EndableRequest>()
  #spare: TLSSocket | undefined

  constructor(origin: string, credentials: Credentials, timings: ConnectionTimings) {
    this.#makePool = () => {
      this.#renewAt = elapsed() + jitter(...timings.maxAgeMs)
      return new undici.Pool(origin, {
        ...http1Options,
        keepAliveTimeout: timings.idleMs,
        keepAliveMaxTimeout: timings.idleMs,
        connect: this.#spareOr(dialer(credentials, 'http/1.1')),
      })
    }
    this.#pool = this.#makePool()
    this.#sessions = origin.startsWith('https:')
      ? new Sessions({
          origin,
          connect: dialer(credentials, 'h2 or http/1.1'),
          timings,
          http1: (request, handler) =>
            void this.#pool.dispatch({ ...request, headers: [...request.headers] }, handler),
          onHttp1Socket: (socket) => this.#offerToPool(socket),
          onSilent: () => this.#renewPool(),
        })
      : undefined
  }

  dispatch(request: UpstreamRequest, handler: Dispatcher.DispatchHandler): void {
    if (elapsed() > this.#renewAt) this.#renewPool()
    if (request.isWatch !== true) return void this.#pool.dispatch(request, handler)
    const watch = new EndableRequest(handler, () => this.#watches.delete(watch))
    this.#watches.add(watch)
    const { method, path, headers, body } = request
    if (this.#sessions && Array.isArray(headers) && (body ?? null) === null)
      this.#sessions.dispatch({ method, path, headers: headers as string[] }, watch)
    else this.#pool.dispatch(request, watch)
  }

  /**
   * New requests go over new connections, and those under way stay: where the pool is old, and
   * where a session was silent. The fault behind that may have broken the pool's connections, no
   * timer ends a request on one of those, and silence alone is no failure.
   */
  #renewPool(): void {
    const old = this.#pool
    this.#pool = this.#makePool()
    this.#oldPools.add(old)
    void old.close().finally(() => this.#oldPools.delete(old))
  }

  /**
   * Offers a connection without HTTP/2 to the pool, which is about to open one; closes it where the
   * pool does not take it.
   */
  #offerToPool(socket: TLSSocket): void {
    this.#spare = socket
    void turn().then(() => {
      if (this.#spare === socket) socket.end()
      this.#spare = undefined
    })
  }

  #spareOr(connect: buildConnector.connector): buildConnector.connector {
    return (options, callback) => {
      const spare = this.#spare
      if (!spare || spare.destroyed) return connect(options, callback)
      this.#spare = undefined
      queueMicrotask(() => callback(null, spare))
    }
  }

  /** The number of open connections, of one protocol or both. */
  open(protocol?: Protocol): number {
    const pools = protocol === 'h2' ? [] : [this.#pool, ...this.#oldPools]
    const plain = pools.reduce((sum, { stats }) => sum + stats.connected, 0)
    const sessions = protocol === 'http/1.1' ? 0 : (this.#sessions?.size ?? 0)
    return plain + sessions
  }

  endWatches(reason: Error): void {
    for (const watch of this.#watches) watch.end(reason)
  }

  /** Takes no more requests; resolves when those in flight, watches included, are over. */
  async retire(): Promise<void> {
    await Promise.all([this.#sessions?.retire(), this.#pool.close()])
  }

  async destroy(): Promise<void> {
    this.endWatches(new ConnectionsClosed())
    this.#sessions?.destroy()
    await Promise.all([this.#pool, ...this.#oldPools].map((pool) => pool.destroy()))
  }
}

/**
 * A watch that the hub can end: its handler gets a clean end, as if the server had ended the
 * answer. Before the answer has begun, the request fails instead.
 */
export class EndableRequest implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler
  readonly #onOver: (ended: EndableRequest) => void
  #controller: Dispatcher.DispatchController | undefined
  #answered = false
  #over = false

  constructor(handler: Dispatcher.DispatchHandler, onOver: (ended: EndableRequest) => void) {
    this.#handler = handler
    this.#onOver = onOver
  }

  end(reason: Error): void {
    const controller = this.#controller
    if (this.#over || !controller) return
    if (this.#answered) this.onResponseEnd(controller, {})
    controller.abort(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#controller = controller
    this.#handler.onRequestStart?.(controller, context)
  }

  onResponseStart(...[controller, status, headers, message]: Parameters<ResponseStart>): void {
    this.#answered = status >= 200
    this.#handler.onResponseStart?.(controller, status, headers, message)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#over) this.#handler.onResponseData?.(controller, chunk)
  }

  onResponseEnd(...[controller, trailers]: Parameters<ResponseEnd>): void {
    if (!this.#finish()) return
    this.#handler.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (!this.#finish()) return
    this.#handler.onResponseError?.(controller, error)
  }

  /** False where the request was already over. */
  #finish(): boolean {
    if (this.#over) return false
    this.#over = true
    this.#onOver(this)
    return true
  }
}

type ResponseStart = NonNullable<Dispatcher.DispatchHandler['onResponseStart']>
type ResponseEnd = NonNullable<Dispatcher.DispatchHandler['onResponseEnd']>
