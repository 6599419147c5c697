import { RequestRefused, ResourceExpired } from '../../api/reflector/reflector.ts'
import { UnusableAnswer, type Reply } from '../../http/exchange/exchange.ts'

/** Timeouts, too many requests, and what a gateway says of a connection. */
const passing = new Set([408, 421, 425, 429])

/**
 * The meaning for a reflector of an answer of another kind than requested: the version has expired;
 * the request is refused, so that it would be refused again; or a failure that may pass, as any
 * failure of an API server that is starting. A client-go reflector also repeats a watch only after
 * what may pass (429, no connection), and otherwise lists again.
 */
export function refusalOf(reply: Reply): Error {
  const status = reply.kind === 'upgrade' ? 0 : reply.status
  if (status === 410) return new ResourceExpired()
  if ((reply.kind === 'bytes' || reply.kind === 'body') && reply.isStarting)
    return new UnusableAnswer(`answered ${status} by an API server that is starting`)
  if (status === 200 || (status >= 400 && status < 500 && !passing.has(status)))
    return new RequestRefused(status)
  return new UnusableAnswer(`answered ${status}`)
}
