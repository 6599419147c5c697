import type { Exchange, Handler, WireReply } from '../../http/exchange/exchange.ts'
import { isLongRunning, isWatch } from '../../api/request/request-info.ts'

/**
 * Marks answers that last and cannot be resumed elsewhere, such as followed logs. A hub that stops
 * ends its watches, whose clients resume them with the next hub; a lasting answer goes on for the
 * grace period, while all else is handed over.
 */
export function withLongRunning(next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> {
  return (exchange) => {
    const { info } = exchange
    const mayLast = isLongRunning(info) && !isWatch(info)
    return mayLast ? next(exchange).then(lasting) : next(exchange)
  }
}

const lasting = (reply: WireReply): WireReply =>
  reply.kind === 'bytes' ? { ...reply, longRunning: true } : reply
