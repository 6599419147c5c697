import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'

/**
 * Whether a certificate with its chain and a key, both PEM, belong together and TLS takes them: a
 * listener that is given a chain in which a later certificate cannot be read throws.
 */
export function isUsablePair(certificate: string, key: string): boolean {
  try {
    createSecureContext({ cert: certificate, key })
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}
