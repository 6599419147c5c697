import type { UpstreamReply } from './attempt.ts'

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
export function isDraining({ status, headers, whole }: UpstreamReply): boolean {
  const text = texts.get(status)
  if (text === undefined || headers.get('retry-after') === undefined) return false
  if (headers.get('x-kubernetes-pf-flowschema-uid') !== undefined) return false
  const body = whole()
  return body !== undefined && body.byteLength <= mostBytes && body.includes(text)
}

const texts: ReadonlyMap<number, string> = new Map([
  [503, '"message":"apiserver is shutting down"'],
  [429, 'The apiserver is shutting down, please try again later.'],
])
