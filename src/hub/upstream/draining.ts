import { asBuffer } from '../../base/bytes.ts'
import type { UpstreamReply } from '../../http/exchange/exchange.ts'

/** The answers of an API server that drains are shorter. */
const mostBytes = 1_024

/**
 * Whether an API server refused the request because it shuts down, so that the client retries at
 * another. It does so in one of two texts, both with Retry-After (apiserver pkg/server/filters): a
 * Status with 503 while it waits for requests in flight (waitgroup.go), or plain text with 429
 * where it runs with --shutdown-send-retry-after (with_retry_after.go). Both filters run before
 * authentication, so that neither answer has the flow schema header that every later answer
 * carries; a 503 or 429 with that header, or with another text, is an ordinary answer. False for a
 * reply whose body has not arrived whole.
 */
export function isDraining(reply: UpstreamReply): boolean {
  const { status, headers } = reply
  if (status !== 503 && status !== 429) return false
  const text = texts[status]
  if (headers.get('retry-after') === undefined) return false
  if (headers.get('x-kubernetes-pf-flowschema-uid') !== undefined) return false
  if (reply.kind !== 'body' || reply.body.byteLength > mostBytes) return false
  return asBuffer(reply.body).includes(text)
}

const texts = {
  503: '"message":"apiserver is shutting down"',
  429: 'The apiserver is shutting down, please try again later.',
} as const
