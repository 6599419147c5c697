import type { Exchange, Handler, WireReply } from '../../http/exchange/exchange.ts'
import { isLongRunning, isWatch } from '../../api/request/request-info.ts'

/**
 * Marks long-running answers that cannot be resumed, such as followed logs. A hub that stops ends
 * its watches, whose clients resume them at the next hub; a long-running answer continues for the
 * grace period, while the successor serves everything else.
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
