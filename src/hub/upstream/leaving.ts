import type { UpstreamReply } from './attempt.ts'

/** No answer by which an API server turns requests away is longer. */
const mostBytes = 1_024

/**
 * Whether an API server that is being stopped has turned the request away, so that its client asks
 * another. It does so in one of two texts, both with Retry-After (apiserver pkg/server/filters): a
 * Status with 503 once it has begun to wait for what is under way (waitgroup.go), or plain text
 * with 429 where it runs with --shutdown-send-retry-after (with_retry_after.go). Both come before
 * it knows who asks, so without the mark of the flow schema that every later answer carries; a 503
 * or 429 with that mark, or with any other text, is an answer. False of a reply whose body has not
 * arrived whole.
 */
export function isLeaving({ status, headers, whole }: UpstreamReply): boolean {
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
