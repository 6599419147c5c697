import type { Exchange, Handler, WireReply } from '../exchange/exchange.ts'
import { isProven } from '../exchange/proven.ts'

/**
 * Says to the listener that the caller is proven: before the request goes on or, where an API server's answer is what proves the token,
 * before that answer goes to the client.
 */
export function withProof(next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> {
  return (exchange) => {
    if (says(exchange)) return next(exchange)
    return next(exchange).then((reply) => {
      says(exchange)
      return reply
    })
  }
}

function says(exchange: Exchange): boolean {
  if (!isProven(exchange)) return false
  exchange.onProven?.(exchange.identity)
  return true
}
