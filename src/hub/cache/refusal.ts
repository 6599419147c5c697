import { RequestRefused, ResourceExpired } from '../../api/reflector/reflector.ts'
import type { Reply } from '../../http/exchange/exchange.ts'
import { UnusableAnswer } from '../../http/exchange/unusable-answer.ts'

/**
 * The meaning for a reflector of an answer of another kind than requested: the version has expired;
 * the request is refused, by a status code of `refusals` or by a 200; or a failure that may pass,
 * as any failure of an API server that is starting.
 */
export function refusalOf(reply: Reply, refusals: ReadonlySet<number>): Error {
  const status = reply.kind === 'upgrade' ? 0 : reply.status
  if (status === 410) return new ResourceExpired()
  if (reply.kind === 'bytes' && reply.isStarting)
    return new UnusableAnswer(`answered ${status} by an API server that is starting`)
  if (refusals.has(status) || status === 200) return new RequestRefused(status)
  return new UnusableAnswer(`answered ${status}`)
}
