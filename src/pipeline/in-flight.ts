import { onAbort } from '../base/abort.ts'
import { after } from '../base/clock.ts'
import type { Exchange, Handler, Reply } from '../exchange/exchange.ts'
import { StatusError, timeout, tooManyRequests, type Status } from '../kube/status.ts'
import { isLongRunning } from '../request/request-info.ts'
import { Ending } from './ending.ts'

/** Why a short request was not served. */
export type Shed = 'in-flight' | 'slow-body' | 'memory'

export type OnShed = (reason: Shed) => void

/** Whether a request is short, and may be shed. Watches, logs and upgrades are not: a node needs every one of its watches. */
export const isShort = ({ info, upgrade }: Exchange): boolean => !isLongRunning(info) && !upgrade

/** How long a body may take to arrive: as long as an API server gives a whole short request (--request-timeout). */
const bodyMs = 60_000

const tooMany = (): StatusError =>
  new StatusError(tooManyRequests('too many requests at once, please try again later', 1))

/**
 * Answers 429 to short requests beyond `limit`, which are never queued. A request whose body is still on its way takes no slot, so that
 * slow senders block nobody; of those at most `limit` more are served at a time, and the one that has been sending longest makes room.
 */
export function withInFlightLimit(limit: () => number, onShed: OnShed) {
  return (next: Handler<Exchange>): Handler<Exchange> => {
    let inFlight = 0
    const sending = new SlowSenders(limit, onShed)
    return (exchange) => {
      if (!isShort(exchange)) return next(exchange)
      if (inFlight >= limit()) {
        onShed('in-flight')
        throw tooMany()
      }
      const take = (): void => {
        inFlight++
        onAbort(exchange.signal, () => inFlight--)
      }
      if (exchange.body) return sending.serve(exchange, next, take)
      take()
      return next(exchange)
    }
  }
}

/** Short requests whose bodies have not arrived whole, the oldest first. */
class SlowSenders {
  readonly #limit: () => number
  readonly #onShed: OnShed
  readonly #all = new Set<Ending>()

  constructor(limit: () => number, onShed: OnShed) {
    this.#limit = limit
    this.#onShed = onShed
  }

  /** Calls `arrived` when the whole body is there, unless the request is over by then. */
  serve(exchange: Exchange, next: Handler<Exchange>, arrived: () => void): Promise<Reply> {
    const one = new Ending(exchange)
    const patience = after(bodyMs, () => {
      this.#shed(one, timeout('the body of the request did not arrive in time'))
    })
    const over = (): boolean => {
      patience[Symbol.dispose]()
      return this.#all.delete(one)
    }
    exchange.body?.once('end', () => over() && arrived())
    onAbort(exchange.signal, over)
    this.#all.add(one)
    const [first] = this.#all
    if (this.#all.size > this.#limit() && first) {
      this.#shed(first, tooManyRequests('too many requests at once, please send faster', 1))
    }
    return one.serve(next)
  }

  #shed(one: Ending, status: Status): void {
    if (!this.#all.delete(one)) return
    this.#onShed('slow-body')
    one.end(new StatusError(status))
  }
}
