/** A bootstrap token's id, and its secret in the clear. */
export interface SigningToken {
  readonly id: string
  readonly secret: string
}

/**
 * Whether a detached JWS (RFC 7515, appendix F) is the signature of the text with a bootstrap
 * token, as the controller bootstrapsigner makes it (kubernetes pkg/controller/bootstrap/jws.go).
 * False for anything that is no such JWS. Loads jose, which a hub with a certificate needs not.
 */
export async function isSignedWith(
  { id, secret }: SigningToken,
  text: string,
  jws: string,
): Promise<boolean> {
  const [header, detached, mac, ...more] = jws.split('.')
  if (detached !== '' || mac === undefined || more.length > 0) return false
  const { compactVerify } = await import('jose')
  const payload = Buffer.from(text).toString('base64url')
  try {
    const key = Buffer.from(secret)
    const verified = await compactVerify(`${header}.${payload}.${mac}`, key, {
      algorithms: ['HS256'],
    })
    return verified.protectedHeader.kid === id
  } catch {
    return false
  }
}
