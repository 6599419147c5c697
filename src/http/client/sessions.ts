import type { TLSSocket } from 'node:tls'
import type { buildConnector, Dispatcher } from 'undici'
import { elapsed } from '../../base/clock.ts'
import { dial } from './dial.ts'
import type { Pace } from './pace.ts'
import { Session } from './session.ts'
import { Stream, type StreamRequest, type Ways } from './stream.ts'

export interface SessionsOptions {
  readonly origin: string
  readonly connect: buildConnector.connector
  readonly pace: Pace
  /** Where requests go when the server does not offer HTTP/2. */
  readonly plain: Ways['plain']
  /** Takes a connection over which HTTP/1.1 was agreed on. */
  readonly onPlain: (socket: TLSSocket) => void
}

/**
 * HTTP/2 sessions to one server, as many as its limit of streams asks for: a further one is opened
 * before the limit is reached.
 *
 * They are node:http2's own, not undici's. undici's pool fills a client up to a number of its own,
 * whatever the server allows; it repeats by itself what GOAWAY cut off; and it gives header fields
 * as an object, which has lost their order and number.
 */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #sessions = new Set<Session>()
  #waiting: Stream[] = []
  #opening = false
  #plainUntil = 0
  #state: 'open' | 'retired' | 'destroyed' = 'open'
  readonly #empty = Promise.withResolvers<void>()

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#sessions.size
  }

  dispatch(request: StreamRequest, handler: Dispatcher.DispatchHandler): void {
    const { origin, plain } = this.#options
    if (elapsed() < this.#plainUntil) return plain(request, handler)
    const again = (stream: Stream): void => this.#place(stream)
    this.#place(new Stream(new URL(origin), request, handler, { again, plain }))
  }

  #place(stream: Stream): void {
    const session = this.#withRoom()
    if (session) return session.run(stream)
    this.#waiting.push(stream)
    void this.#open()
  }

  #withRoom(): Session | undefined {
    for (const session of this.#sessions) if (session.room > 0) return session
    return undefined
  }

  /** One at a time: many that wait together need few sessions, not one each. */
  async #open(): Promise<void> {
    if (this.#opening) return
    this.#opening = true
    try {
      while (this.#waiting.length > 0) await this.#another()
    } catch (cause) {
      for (const stream of this.#taken()) stream.unplaced(cause)
    } finally {
      this.#opening = false
      this.#settle()
    }
  }

  async #another(): Promise<void> {
    const { origin, connect, pace } = this.#options
    if (this.#state === 'destroyed') throw new Error('the connections are closed')
    const socket = await dial(connect, origin)
    if (socket.alpnProtocol !== 'h2') {
      this.#options.onPlain(socket)
      return this.#goPlain()
    }
    const session = await Session.open(origin, socket, pace, () => this.#serve())
    this.#sessions.add(session)
    session.onClose(() => {
      this.#sessions.delete(session)
      this.#settle()
    })
    this.#admit(session)
  }

  #admit(session: Session): void {
    if (this.#state === 'destroyed') return session.destroy()
    if (session.room > 0) this.#serve()
    else {
      session.drain()
      this.#goPlain()
    }
    if (this.#state === 'retired') session.drain()
  }

  #serve(): void {
    while (this.#waiting.length > 0) {
      const session = this.#withRoom()
      if (!session) return
      const stream = this.#waiting.shift()
      if (stream) session.run(stream)
    }
  }

  #goPlain(): void {
    this.#plainUntil = elapsed() + this.#options.pace.plainMs
    for (const stream of this.#taken()) stream.goPlain()
  }

  #taken(): Stream[] {
    const waiting = this.#waiting
    this.#waiting = []
    return waiting
  }

  /** No more requests come; sessions close with their last stream. Resolves when all have. */
  retire(): Promise<void> {
    if (this.#state === 'open') this.#state = 'retired'
    for (const session of this.#sessions) session.drain()
    this.#settle()
    return this.#empty.promise
  }

  #settle(): void {
    if (this.#state !== 'open' && !this.#opening && this.#sessions.size === 0) this.#empty.resolve()
  }

  destroy(): void {
    this.#state = 'destroyed'
    for (const session of this.#sessions) session.destroy()
    this.#settle()
  }
}
