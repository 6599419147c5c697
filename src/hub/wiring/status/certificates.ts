import { X509Certificate } from 'node:crypto'
import { blocksIn } from '../../../certificates/bundle.ts'
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
  /** Why no new one is obtained from the cluster although one is due. */
  readonly renewalFault?: string
}

/** Why no new certificate is obtained from the cluster, by its use. */
type RenewalFaults = Partial<Record<'client' | 'serving', string | undefined>>

/** More authorities than a cluster has while it replaces them. */
const mostOfOneUse = 8

/** The certificates of the hub. `at`: in milliseconds since the epoch. */
export function certificateStatuses(
  { certificate, ca, from }: Pick<Credentials, 'certificate' | 'ca' | 'from'>,
  serving: Pick<ServingCredentials, 'certificate' | 'clientCa' | 'elsewhere'>,
  at: number,
  renewalFaults: RenewalFaults = {},
): readonly CertificateStatus[] {
  const leaf = (chain = ''): string | undefined => blocksIn(chain)[0]
  const of = (
    use: CertificateStatus['use'],
    pem = '',
    file?: string,
  ): readonly CertificateStatus[] =>
    blocksIn(pem)
      .slice(0, mostOfOneUse)
      .flatMap((block) => {
        const one = statusOf(block, at)
        return one ? [{ use, ...one, ...(file !== undefined && { file }) }] : []
      })
  const obtained = (use: keyof RenewalFaults, one: CertificateStatus): CertificateStatus => {
    const renewalFault = renewalFaults[use]
    return renewalFault === undefined ? one : { ...one, renewalFault }
  }
  return [
    ...of('client', leaf(certificate?.chain), from?.certificate).map((one) =>
      obtained('client', one),
    ),
    ...[serving.elsewhere?.certificate, serving.certificate]
      .flatMap((each) => of('serving', leaf(each)))
      .map((one, i) => (i === 0 ? obtained('serving', one) : one)),
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
