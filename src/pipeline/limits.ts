import { onAbort, follow } from '../base/abort.ts'
import { after } from '../base/clock.ts'
import type { Exchange, Handler } from '../exchange/exchange.ts'
import { StatusError, timeout, tooManyRequests } from '../kube/status.ts'
import { isLongRunning } from '../request/request-info.ts'

/** Short requests are shed before they queue; watches, of which there are as many as the node needs, are not. */
export function withInFlightLimit(limit: number, onRejected: () => void) {
  return (next: Handler<Exchange>): Handler<Exchange> => {
    let inFlight = 0
    return (exchange) => {
      if (isLongRunning(exchange.info) || exchange.upgrade) return next(exchange)
      if (inFlight >= limit) {
        onRejected()
        throw new StatusError(
          tooManyRequests('too many requests at once, please try again later', 1),
        )
      }
      inFlight++
      onAbort(exchange.signal, () => inFlight--)
      return next(exchange)
    }
  }
}

/** A watch that its server forgot to end is ended this long after its time. */
const graceMs = 15_000

/**
 * Watches end at the latest fifteen seconds after the time they asked for, one that has not begun by then with a 504; nothing else is
 * timed out.
 */
export function withDeadline(next: Handler<Exchange>): Handler<Exchange> {
  return async (exchange) => {
    const { info } = exchange
    const seconds =
      info.isResource && info.verb === 'watch' ? Number(info.query.get('timeoutSeconds')) : 0
    if (!(seconds > 0) || seconds > 86_400) return next(exchange)
    const deadline = new AbortController()
    const over = new Error('a watch was over its time')
    const links = [
      follow(exchange.signal, deadline),
      after(seconds * 1000 + graceMs, () => deadline.abort(over)),
    ]
    onAbort(exchange.signal, () => links.forEach((link) => link[Symbol.dispose]()))
    try {
      return await next({ ...exchange, signal: deadline.signal })
    } catch (error) {
      if (deadline.signal.reason !== over) throw error
      throw new StatusError(timeout('the watch did not begin within the time it asked for'))
    }
  }
}
