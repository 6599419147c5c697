import type { Readable } from 'node:stream'
import { asBuffer, joined } from '../base/bytes.ts'
import type { Exchange, Handler } from '../exchange/exchange.ts'
import { requestEntityTooLarge, StatusError } from '../kube/status.ts'
import { isTokenRequest } from '../request/request-info.ts'

/** Of a larger body, or one of unknown length, nothing is read here: it passes as it comes, and its answer is not kept. */
const contentBytes = 64 * 1024

/** Reads the bodies of token requests, by which their answers are kept and found again. */
export function withContent(next: Handler<Exchange>): Handler<Exchange> {
  return (exchange) => {
    const { body, headers, info } = exchange
    if (!isTokenRequest(info) || !body || exchange.upgrade) return next(exchange)
    const length = Number(headers.get('content-length') ?? Infinity)
    if (!(length <= contentBytes)) return next(exchange)
    return contentOf(body).then((content) => next({ ...exchange, content }))
  }
}

async function contentOf(body: Readable): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body) {
    const chunk = asBuffer(part as Uint8Array)
    bytes += chunk.byteLength
    // In HTTP/2 a body may be longer than it was announced.
    if (bytes > contentBytes) {
      throw new StatusError(requestEntityTooLarge(`limit is ${contentBytes}`))
    }
    parts.push(chunk)
  }
  return joined(parts)
}
