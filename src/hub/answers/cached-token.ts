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
 * Answers a token request with the last token that an API server issued to this caller for the same
 * request, byte for byte, until the token's `exp` claim. The answer's expirationTimestamp does not
 * count: it may be an hour where the token lasts a year (kubernetes pkg/serviceaccount/claims.go,
 * `warnafter`). Throws 503 where no token is stored.
 *
 * A node's clock may be behind by decades, so that an expired token is handed out. Its verifier has
 * its own clock, and without a token the pod would not start.
 */
export async function cachedToken(
  exchange: Exchange,
  info: ResourceRequest,
  { store }: { readonly store: ObjectStore },
): Promise<Reply> {
  const spec = tokenSpec(await requestObject(exchange))
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
