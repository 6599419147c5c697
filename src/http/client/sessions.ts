import type { buildConnector, Dispatcher } from 'undici'
import { elapsed } from '../../base/clock.ts'
import { dial } from './dial.ts'
import type { ConnectionTimings } from './connection-timings.ts'
import { Session } from './session.ts'
import { Stream, type OverHttp1, type StreamRequest } from './stream.ts'
import { ConnectionsClosed } from './wire-error.ts'

export interface SessionsOptions {
  readonly origin: string
  readonly connect: buildConnector.connector
  readonly timings: ConnectionTimings
  /** Sends requests when the server does not offer HTTP/2. */
  readonly http1: OverHttp1
  /** A session that receives nothing any more is given up. */
  readonly onSilent: () => void
}

/**
 * HTTP/2 sessions to one server, as many as its limit of streams requires: another one is opened
 * before the limit is reached.
 *
 * They use node:http2, not undici. undici's pool fills a client up to a number of its own, whatever
 * the server allows; it repeats by itself what a GOAWAY cut off; and it returns header fields as an
 * object, which loses their order and number.
 */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #sessions = new Set<Session>()
  #waiting: Stream[] = []
  #opening = false
  #http1Until = 0
  #state: 'open' | 'retired' | 'destroyed' = 'open'
  readonly #empty = Promise.withResolvers<void>()

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#sessions.size
  }

  dispatch(request: StreamRequest, handler: Dispatcher.DispatchHandler): void {
    const { origin, http1 } = this.#options
    if (elapsed() < this.#http1Until) return http1(request, handler)
    const stream = new Stream(new URL(origin), request, handler, http1)
    const session = this.#sessionWithRoom()
    if (session) return session.run(stream)
    this.#waiting.push(stream)
    void this.#open()
  }

  #sessionWithRoom(): Session | undefined {
    for (const session of this.#sessions) if (session.room > 0) return session
    return undefined
  }

  /** One at a time: many waiting requests need few sessions, not one each. */
  async #open(): Promise<void> {
    if (this.#opening) return
    this.#opening = true
    try {
      while (this.#waiting.length > 0) await this.#openSession()
    } catch (cause) {
      for (const stream of this.#takeWaiting()) stream.failUnconnected(cause)
    } finally {
      this.#opening = false
      this.#resolveIfEmpty()
    }
  }

  async #openSession(): Promise<void> {
    const { origin, connect, timings } = this.#options
    if (this.#state === 'destroyed') throw new ConnectionsClosed()
    const socket = await dial(connect, origin)
    if (socket.alpnProtocol !== 'h2') {
      socket.end()
      return this.#fallBack()
    }
    const session = await Session.open(origin, socket, timings, () => this.#assignWaiting())
    this.#sessions.add(session)
    session.onSilent(this.#options.onSilent)
    session.onClose(() => {
      this.#sessions.delete(session)
      this.#resolveIfEmpty()
    })
    this.#admit(session)
  }

  #admit(session: Session): void {
    if (this.#state === 'destroyed') return session.destroy()
    if (session.room > 0) this.#assignWaiting()
    else {
      session.drain()
      this.#fallBack()
    }
    if (this.#state === 'retired') session.drain()
  }

  #assignWaiting(): void {
    while (this.#waiting.length > 0) {
      const session = this.#sessionWithRoom()
      if (!session) return
      const stream = this.#waiting.shift()
      if (stream) session.run(stream)
    }
  }

  #fallBack(): void {
    this.#http1Until = elapsed() + this.#options.timings.http1Ms
    for (const stream of this.#takeWaiting()) stream.fallBack()
  }

  #takeWaiting(): Stream[] {
    const waiting = this.#waiting
    this.#waiting = []
    return waiting
  }

  /**
   * Takes no more requests; sessions close with their last stream. Resolves when all have closed.
   */
  retire(): Promise<void> {
    if (this.#state === 'open') this.#state = 'retired'
    for (const session of this.#sessions) session.drain()
    this.#resolveIfEmpty()
    return this.#empty.promise
  }

  #resolveIfEmpty(): void {
    if (this.#state !== 'open' && !this.#opening && this.#sessions.size === 0) this.#empty.resolve()
  }

  destroy(): void {
    this.#state = 'destroyed'
    for (const session of this.#sessions) session.destroy()
    this.#resolveIfEmpty()
  }
}
