import { now } from '../../base/clock.ts'
import { objectBody } from '../../api/codec/object.ts'
import { tokenIn, tokenSpec } from '../../api/codec/token-request.ts'
import type { Exchange, Reply } from '../../http/exchange/exchange.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { badRequest, StatusError } from '../../api/kube/status.ts'
import { claimsOf, claimTimeMs } from '../../api/kube/web-token.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { tokenKey } from './keys.ts'
import { withStaleness } from './staleness.ts'
import type { ObjectStore } from '../store/store.ts'
import { answerHeaders } from './replies.ts'
import { neverCached } from './offline-reads.ts'
import { requestObject } from './request-object.ts'

/**
 * Answers a token request with the last token that the cloud gave this caller for the same, in the
 * bytes it came in, as long as that token has not expired by its own account: the answer may speak
 * of an hour where the token lives a year (kubernetes pkg/serviceaccount/claims.go, `warnafter`).
 * Throws 503 where there is none.
 *
 * On a node whose clock is behind, maybe by decades, a token seems to last that has expired. It is
 * given out all the same: whoever verifies it has a clock of its own, and without a token the pod
 * would not start.
 */
export async function cachedToken(
  exchange: Exchange,
  info: ResourceRequest,
  { store }: { readonly store: ObjectStore },
): Promise<Reply> {
  const { encoding: asked, gvk: kind, object: request } = await requestObject(exchange)
  const spec = tokenSpec({ encoding: asked, gvk: kind, object: request })
  if (!spec) throw new StatusError(badRequest('the object provided is no TokenRequest'))
  for (const representation of exchange.representations) {
    if (representation.projection !== 'object') continue
    const found = store.get(tokenKey(exchange, info, representation, spec))
    if (found === undefined || found === 'absent') continue
    const { encoding } = representation
    const token = tokenIn({ encoding, ...found })
    if ((claimTimeMs(claimsOf(token)?.claims['exp']) ?? 0) <= now()) continue
    return {
      kind: 'body',
      from: 'cache',
      status: 201,
      headers: withStaleness(answerHeaders(mediaType(encoding)), exchange, found.confirmedAt),
      body: objectBody(encoding, 'object', found.gvk, found.object),
    }
  }
  throw neverCached()
}
