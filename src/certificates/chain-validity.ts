import type { X509Certificate } from 'node:crypto'

/** In milliseconds since the epoch, both ends included. */
export interface ChainValidity {
  readonly from: number
  readonly to: number
}

/** As many as a client may send between its own certificate and one of the authorities. */
export const mostIntermediates = 3

/** id-kp-clientAuth (RFC 5280 section 4.2.1.12). */
const clientAuth = '1.3.6.1.5.5.7.3.2'

/**
 * When a client's certificate and all that vouch for it are valid; `undefined` where anything but a
 * date is wrong: no authority has signed it, by way of the certificates that the client sent (they
 * are its `issuerCertificate`, one after the other) or directly; or it is not for clients.
 *
 * Of a certificate that it does not accept, OpenSSL names one fault only, the last it finds, and
 * that is the date where there are others.
 */
export function validityOfChain(
  leaf: X509Certificate,
  authorities: readonly X509Certificate[],
): ChainValidity | undefined {
  if (leaf.ca || !leaf.keyUsage?.includes(clientAuth)) return undefined
  const sent = sentWith(leaf)
  const chain = [leaf]
  // Each that is found is gone through as well.
  for (const subject of chain) {
    const anchor = authorities.find((each) => isIssuerOf(subject, each))
    if (anchor) return commonValidity([...chain, anchor])
    const next = sent.find((each) => !chain.includes(each) && isIssuerOf(subject, each))
    if (next) chain.push(next)
  }
  return undefined
}

function sentWith(leaf: X509Certificate): readonly X509Certificate[] {
  const sent: X509Certificate[] = []
  let next = leaf.issuerCertificate
  for (; next && sent.length < mostIntermediates; next = next.issuerCertificate) sent.push(next)
  return sent
}

/**
 * The names are compared first, so that no key which the client has chosen is tried in vain. `ca`
 * is false, too, for a certificate whose key usage does not let it sign others.
 */
function isIssuerOf(subject: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return (
      issuer.ca &&
      (issuer.keyUsage?.includes(clientAuth) ?? true) &&
      subject.checkIssued(issuer) &&
      subject.verify(issuer.publicKey)
    )
  } catch {
    // A key of a kind that Node does not know.
    return false
  }
}

const commonValidity = (chain: readonly X509Certificate[]): ChainValidity => ({
  from: Math.max(...chain.map(({ validFromDate }) => validFromDate.getTime())),
  to: Math.min(...chain.map(({ validToDate }) => validToDate.getTime())),
})
