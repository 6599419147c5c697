import type { Exchange, Handler, WireReply } from '../../http/exchange/exchange.ts'
import { isProven } from '../../http/exchange/proven.ts'

/**
 * Says to the listener who the caller has proved to be: before the request goes on or, where an API
 * server's answer is what proves the token, before that answer goes to the client. Layers below may
 * have found out by then that the token is a service account's: the account counts, so that
 * connections with many tokens of one account are those of one caller. A proof that the answer
 * takes back is taken back there, too.
 */
export function withProvenCaller(next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> {
  return (exchange) => {
    const wasProven = says(exchange)
    if (wasProven && !exchange.claim) return next(exchange)
    return next(exchange).then((reply) => {
      if (!wasProven) says(exchange)
      else if (!isProven(exchange)) exchange.onDisproven?.()
      return reply
    })
  }
}

function says(exchange: Exchange): boolean {
  if (!isProven(exchange)) return false
  exchange.onProven?.(exchange.claim?.identity() ?? exchange.identity)
  return true
}
