import { isObject, type Json, type JsonObject } from './json.ts'

/**
 * Header and claims of a JSON web token (RFC 7519), unverified; `undefined` for another kind of
 * token.
 */
export function claimsOf(
  token: string,
): { readonly header: JsonObject; readonly claims: JsonObject } | undefined {
  const parts = token.split('.')
  const [head = '', body = ''] = parts
  const [header, claims] = [objectIn(head), objectIn(body)]
  return parts.length === 3 && header && claims ? { header, claims } : undefined
}

function objectIn(part: string): JsonObject | undefined {
  try {
    const value = JSON.parse(Buffer.from(part, 'base64url').toString()) as Json
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A time claim in milliseconds since the epoch. */
export const claimTimeMs = (claim: Json | undefined): number | undefined =>
  typeof claim === 'number' ? claim * 1000 : undefined
