import { X509Certificate } from 'node:crypto'

/** The certificates of a PEM text, one by one, each with the end of its line. */
export const blocksIn = (pem: string): readonly string[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (block) => `${block}\n`,
  )

/** The authorities of a bundle. Blocks that cannot be read are passed over, as in Go. */
export const authoritiesIn = (bundle: string): readonly X509Certificate[] =>
  blocksIn(bundle).flatMap((block) => {
    try {
      return [new X509Certificate(block)]
    } catch {
      return []
    }
  })

/**
 * X509_CERT_AUX of OpenSSL (x_x509a.c), a SEQUENCE of a SEQUENCE of purposes for which a
 * certificate is trusted: here clientAuth.
 */
const trustedForClients = Buffer.from('300c300a06082b06010505070302', 'hex')

/**
 * The authorities of clients, as PEM for a TLS server, each an anchor as in Go: no one needs to
 * know who signed it. A TLS client of Node has `allowPartialTrustChain` for that; a server uses
 * that in the contexts of its server names only, so that the trust is written beside each
 * certificate, as `openssl x509 -addtrust` does.
 */
export const clientAnchors = (bundle: string): string[] =>
  authoritiesIn(bundle).map(({ raw }) => {
    const lines = Buffer.concat([raw, trustedForClients])
      .toString('base64')
      .match(/.{1,64}/g)
    const label = 'TRUSTED CERTIFICATE-----'
    return `-----BEGIN ${label}\n${lines?.join('\n')}\n-----END ${label}\n`
  })
