import type { Exchange, Handler, WireReply } from '../../http/exchange/exchange.ts'
import { isProven } from '../../http/exchange/proven.ts'

/**
 * Reports the proven caller to the listener: before the request is passed on or, where an API
 * server's answer proves the token, before that answer is sent; or where it
 * has upgraded the connection. Layers below may have found by then
 * that the token is a service account's: the account counts, so that connections with many tokens
 * of one account count as one caller. If the answer disproves the caller, that is reported as well.
 */
export function withProvenCaller(next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> {
  return (exchange) => {
    const wasProven = report(exchange)
    if (wasProven && !exchange.claim) return next(exchange)
    const reportOutcome = (): void => {
      if (!wasProven) report(exchange)
      else if (!isProven(exchange)) exchange.onDisproven?.()
    }
    return next(exchange).then((reply) => {
      const outcome = reply.kind === 'upgrade' ? reply.finalStatus : undefined
      if (outcome) void outcome.then(reportOutcome)
      else reportOutcome()
      return reply
    })
  }
}

function report(exchange: Exchange): boolean {
  if (!isProven(exchange)) return false
  exchange.onProven?.(exchange.claim?.identity() ?? exchange.identity)
  return true
}
