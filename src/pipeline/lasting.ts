import type { Exchange, Handler, WireReply } from '../exchange/exchange.ts'
import { isLongRunning } from '../request/request-info.ts'

/**
 * Marks what streams to a person, as logs do. A hub that is to stop ends its watches, which go on elsewhere; these it lets go on as long as
 * it may, and hands over all else meanwhile.
 */
export function withLasting(next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> {
  return async (exchange) => {
    const reply = await next(exchange)
    const { info } = exchange
    const lasts = reply.kind === 'bytes' && isLongRunning(info) && info.verb !== 'watch'
    return lasts ? { ...reply, lasting: true } : reply
  }
}
