import type { JsonObject } from '../../api/kube/json.ts'
import { textAt } from '../../api/kube/json-at.ts'
import { claimsOf, claimTimeMs } from '../../api/kube/web-token.ts'
import { serviceAccount, type Identity } from '../../api/request/identity.ts'

/**
 * The content of a JSON web token (RFC 7519), none of it verified. Times are in milliseconds since
 * the epoch.
 */
export interface WebToken {
  /** The token as the caller sent it. */
  readonly text: string
  readonly keyId: string
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly expiresAt: number | undefined
  readonly notBefore: number | undefined
  /** The service account that the token names. */
  readonly account: Identity | undefined
}

/** `undefined` for a token of another format. */
export function parseWebToken(token: string): WebToken | undefined {
  const read = claimsOf(token)
  if (!read) return undefined
  const { header, claims } = read
  const { aud } = claims
  return {
    text: token,
    keyId: textAt(header, 'kid'),
    issuer: textAt(claims, 'iss'),
    audiences: (Array.isArray(aud) ? aud : [aud]).filter((each) => typeof each === 'string'),
    expiresAt: claimTimeMs(claims['exp']),
    notBefore: claimTimeMs(claims['nbf']),
    account: accountIn(claims),
  }
}

/**
 * The service account in the claims of a TokenRequest (kubernetes pkg/serviceaccount/claims.go),
 * only where the subject names the same account.
 */
function accountIn(claims: JsonObject): Identity | undefined {
  const namespace = textAt(claims, 'kubernetes.io', 'namespace')
  const name = textAt(claims, 'kubernetes.io', 'serviceaccount', 'name')
  const uid = textAt(claims, 'kubernetes.io', 'serviceaccount', 'uid')
  if (!namespace || !name || !uid) return undefined
  // Half of a surrogate pair, which JSON can have, is no part of an identity.
  if (![namespace, name, uid].every((part) => part.isWellFormed())) return undefined
  return claims['sub'] === `system:serviceaccount:${namespace}:${name}`
    ? serviceAccount({ namespace, name, uid })
    : undefined
}
