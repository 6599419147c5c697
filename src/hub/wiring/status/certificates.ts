import { X509Certificate } from 'node:crypto'
import { namesText, outsideValidity, timeText } from '../../../certificates/validity.ts'
import type { Credentials } from '../../../config/credentials.ts'
import type { ServingCredentials } from '../../../http/server/listener.ts'

/** A certificate that the hub shows or trusts. */
export interface CertificateStatus {
  /**
   * `client`: shown to API servers; `serving`: shown at the TLS proxy; `upstream-ca` and
   * `client-ca`: verify API servers, and clients of the TLS proxy.
   */
  readonly use: 'client' | 'serving' | 'upstream-ca' | 'client-ca'
  /** Subject and issuer. */
  readonly names: string
  /** RFC 3339. */
  readonly notBefore: string
  readonly notAfter: string
  /** Absent where the hub has made it, or it stands in the kubeconfig. */
  readonly file?: string
  /** Why it is not valid now. */
  readonly fault?: string
}

/** More authorities than a cluster has while it replaces them. */
const mostOfOneUse = 8

const pemBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** The certificates of the hub. `at`: in milliseconds since the epoch. */
export function certificateStatuses(
  { certificate, ca, from }: Pick<Credentials, 'certificate' | 'ca' | 'from'>,
  serving: Pick<ServingCredentials, 'certificate' | 'clientCa'>,
  at: number,
): readonly CertificateStatus[] {
  const leaf = (chain: string | undefined): string | undefined => chain?.match(pemBlock)?.[0]
  const of = (
    use: CertificateStatus['use'],
    pem: string | undefined,
    file?: string,
  ): readonly CertificateStatus[] =>
    (pem?.match(pemBlock) ?? []).slice(0, mostOfOneUse).flatMap((block) => {
      const one = statusOf(block, at)
      return one ? [{ use, ...one, ...(file !== undefined && { file }) }] : []
    })
  return [
    ...of('client', leaf(certificate?.chain), from?.certificate),
    ...of('serving', leaf(serving.certificate)),
    ...of('upstream-ca', ca, from?.ca),
    ...of('client-ca', serving.clientCa === ca ? undefined : serving.clientCa),
  ]
}

/** `undefined` for a block that Node cannot read: TLS ignores it as well. */
function statusOf(pem: string, at: number): Omit<CertificateStatus, 'use' | 'file'> | undefined {
  try {
    const parsed = new X509Certificate(pem)
    const fault = outsideValidity(parsed, at)
    return {
      names: namesText(parsed),
      notBefore: timeText(parsed.validFromDate.getTime()),
      notAfter: timeText(parsed.validToDate.getTime()),
      ...(fault !== undefined && { fault }),
    }
  } catch {
    return undefined
  }
}
