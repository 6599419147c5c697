import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import { wholeRequestBody } from '../../http/exchange/request-body.ts'
import { isTokenRequest } from '../../api/request/request-info.ts'

/** A larger body, or one of unknown length, passes unread, and its answer is not recorded. */
export const contentBytes = 64 * 1024

/** Reads the bodies of token requests, which are part of the key of their answers. */
export function withContent(next: Handler<Exchange>): Handler<Exchange> {
  return (exchange) => {
    const { body, headers, info } = exchange
    if (!isTokenRequest(info) || !body || exchange.upgrade) return next(exchange)
    const length = Number(headers.get('content-length') ?? Infinity)
    if (!(length <= contentBytes)) return next(exchange)
    return wholeRequestBody(body, contentBytes).then((content) => next({ ...exchange, content }))
  }
}
