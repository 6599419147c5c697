import { readObject, type ObjectOfKind } from '../../api/codec/object.ts'
import { tokenIn, tokenSpec } from '../../api/codec/token-request.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { encodingOf, type Encoding } from '../../api/kube/media-type.ts'
import { unprovenIdentity } from '../../api/request/identity.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { tokenKey } from '../answers/keys.ts'
import type { ObjectKey } from '../store/store.ts'

/** A token as the store has it. */
export interface CachedToken extends ObjectOfKind {
  readonly key: ObjectKey
}

/**
 * The token to store from the answer to a token request; `undefined` where request or answer is of
 * another kind, and for unproven callers. Throws `MalformedBody`.
 */
export function cachedTokenOf(
  exchange: Exchange,
  { info, content }: { readonly info: ResourceRequest; readonly content: Buffer },
  answer: { readonly encoding: Encoding; readonly body: Buffer },
): CachedToken | undefined {
  const requestEncoding = encodingOf(exchange.headers.get('content-type') ?? 'application/json')
  const representation = exchange.representations.find(
    ({ encoding, projection }) => encoding === answer.encoding && projection === 'object',
  )
  if (
    requestEncoding === undefined ||
    representation === undefined ||
    exchange.identity === unprovenIdentity
  )
    return undefined
  const sent = readObject(requestEncoding, 'object', content)
  const spec = tokenSpec({ encoding: requestEncoding, ...sent })
  const answered = readObject(answer.encoding, 'object', answer.body)
  const token = tokenIn({ encoding: answer.encoding, ...answered })
  if (spec === undefined || token === '') return undefined
  const key = tokenKey(exchange, info, representation, spec)
  const { namespace, name } = key
  // A TokenRequest has no version: the last answer counts.
  const { bytes } = answered.object
  return {
    key,
    gvk: answered.gvk,
    object: { namespace, name, uid: '', resourceVersion: '', bytes },
  }
}
