import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import { wholeRequestBody } from '../../http/exchange/request-body.ts'
import { isTokenRequest } from '../../api/request/request-info.ts'

/**
 * Of a larger body, or one of unknown length, nothing is read here: it passes as it comes, and its
 * answer is not kept.
 */
export const contentBytes = 64 * 1024

/** Reads the bodies of token requests, by which their answers are kept and found again. */
export function withContent(next: Handler<Exchange>): Handler<Exchange> {
  return (exchange) => {
    const { body, headers, info } = exchange
    if (!isTokenRequest(info) || !body || exchange.upgrade) return next(exchange)
    const length = Number(headers.get('content-length') ?? Infinity)
    if (!(length <= contentBytes)) return next(exchange)
    return wholeRequestBody(body, contentBytes).then((content) => next({ ...exchange, content }))
  }
}
