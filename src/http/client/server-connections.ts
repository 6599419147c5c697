import type { Dispatcher, Pool } from 'undici'
import { elapsed, jitter } from '../../base/clock.ts'
import type { Credentials } from '../../config/credentials.ts'
import { dialer } from './dial.ts'
import type { ConnectionTimings } from './connection-timings.ts'
import { Sessions } from './sessions.ts'
import { undici } from './undici.ts'

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

  constructor(origin: string, credentials: Credentials, timings: ConnectionTimings) {
    this.#makePool = () => {
      this.#renewAt = elapsed() + jitter(...timings.maxAgeMs)
      return new undici.Pool(origin, {
        ...http1Options,
        keepAliveTimeout: timings.idleMs,
        keepAliveMaxTimeout: timings.idleMs,
        connect: dialer(credentials, 'http/1.1'),
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
          onSilent: () => this.#renewPool(),
        })
      : undefined
  }

  dispatch(request: UpstreamRequest, handler: Dispatcher.DispatchHandler): void {
    if (elapsed() > this.#renewAt) this.#renewPool()
    const { method, path, headers, body } = request
    if (request.isWatch && this.#sessions && Array.isArray(headers) && (body ?? null) === null)
      this.#sessions.dispatch({ method, path, headers: headers as string[] }, handler)
    else this.#pool.dispatch(request, handler)
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

  /** The number of open connections, of one protocol or both. */
  open(protocol?: Protocol): number {
    const pools = protocol === 'h2' ? [] : [this.#pool, ...this.#oldPools]
    const plain = pools.reduce((sum, { stats }) => sum + stats.connected, 0)
    const sessions = protocol === 'http/1.1' ? 0 : (this.#sessions?.size ?? 0)
    return plain + sessions
  }

  /** Takes no more requests; resolves when those in flight, watches included, are over. */
  async retire(): Promise<void> {
    await Promise.all([this.#sessions?.retire(), this.#pool.close()])
  }

  async destroy(): Promise<void> {
    this.#sessions?.destroy()
    await Promise.all([this.#pool, ...this.#oldPools].map((pool) => pool.destroy()))
  }
}
