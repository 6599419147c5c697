import { onAbort, follow } from '../base/abort.ts'
import { after } from '../base/clock.ts'
import type { Exchange, Handler } from '../exchange/exchange.ts'
import { StatusError, tooManyRequests } from '../kube/status.ts'
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

/** Watches end at the latest fifteen seconds after the time they asked for; nothing else is timed out. */
export function withDeadline(next: Handler<Exchange>): Handler<Exchange> {
  return (exchange) => {
    const { info } = exchange
    const seconds =
      info.isResource && info.verb === 'watch' ? Number(info.query.get('timeoutSeconds')) : 0
    if (!(seconds > 0) || seconds > 86_400) return next(exchange)
    const deadline = new AbortController()
    const links = [
      follow(exchange.signal, deadline),
      after(seconds * 1000 + graceMs, () => deadline.abort(new Error('a watch was over its time'))),
    ]
    onAbort(exchange.signal, () => links.forEach((link) => link[Symbol.dispose]()))
    return next({ ...exchange, signal: deadline.signal })
  }
}
