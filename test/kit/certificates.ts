import { createPrivateKey, generateKeyPairSync, X509Certificate, type KeyObject } from 'node:crypto'
import {
  CertificateAuthority,
  type CertificateRequest,
  type IssuedCertificate,
} from '../../src/certificates/authority.ts'
import {
  curve,
  nameOf,
  pemOfKey,
  privateCryptoKey,
  publicCryptoKey,
  signature,
} from '../../src/certificates/keys.ts'
import { loadX509 } from '../../src/certificates/x509.ts'

export interface CertificateDescription {
  readonly commonName: string
  readonly organizations?: readonly string[]
  /** In hours from now. Default: from an hour ago to in an hour. */
  readonly hours?: readonly [number, number]
  /** Default: its own key. */
  readonly signedBy?: IssuedCertificate
  /** Whom it names as its issuer. Default: who has signed it. */
  readonly names?: IssuedCertificate
  /** Whether it has a critical extension that nothing knows. */
  readonly isStrange?: boolean
  /** Whether it may sign others. Default: it may not. */
  readonly isAuthority?: boolean
  /** Whether its key usage says that it signs certificates. Default: as `isAuthority`. */
  readonly signsCertificates?: boolean
  readonly purposes?: readonly ('clientAuth' | 'serverAuth')[]
}

const hour = 3_600_000

/** A certificate with any mistake. */
export async function describedCertificate(of: CertificateDescription): Promise<IssuedCertificate> {
  const x509 = await loadX509()
  const { publicKey, privateKey } = generateKeyPairSync('ec', curve)
  const { commonName, organizations, hours = [-1, 1], signedBy, isAuthority = false } = of
  const signer: KeyObject = signedBy ? createPrivateKey(signedBy.key) : privateKey
  const { signsCertificates = isAuthority, purposes } = of
  const { names = signedBy } = of
  const issuer = names && new x509.X509Certificate(names.certificate)
  const flags = x509.KeyUsageFlags
  const [from, to] = hours.map((each) => new Date(Date.now() + each * hour))
  const certificate = await x509.X509CertificateGenerator.create({
    subject: nameOf(commonName, organizations),
    issuer: issuer?.subjectName ?? nameOf(commonName, organizations),
    publicKey: publicCryptoKey(publicKey),
    signingKey: privateCryptoKey(signer),
    signingAlgorithm: signature,
    ...(from && { notBefore: from }),
    ...(to && { notAfter: to }),
    extensions: [
      new x509.KeyUsagesExtension(
        signsCertificates ? flags.keyCertSign | flags.digitalSignature : flags.digitalSignature,
        true,
      ),
      new x509.BasicConstraintsExtension(isAuthority, undefined, true),
      ...(purposes
        ? [new x509.ExtendedKeyUsageExtension(purposes.map((each) => x509.ExtendedKeyUsage[each]))]
        : []),
      await x509.SubjectKeyIdentifierExtension.create(publicCryptoKey(publicKey)),
      await x509.AuthorityKeyIdentifierExtension.create(
        publicCryptoKey(names ? new X509Certificate(names.certificate).publicKey : publicKey),
      ),
      ...(of.isStrange ? [new x509.Extension('1.2.3.4', true, new Uint8Array([5, 0]))] : []),
    ],
  })
  return { certificate: `${certificate.toString('pem')}\n`, key: pemOfKey(privateKey) }
}

/**
 * An authority below another one, as those of RKE2 and of companies are. What it issues comes with
 * its own certificate; no one shows the one above it.
 */
export async function intermediateAuthority(): Promise<CertificateAuthority> {
  const signedBy = await describedCertificate({ commonName: 'root', isAuthority: true })
  const commonName = 'intermediate'
  const own = await describedCertificate({ commonName, isAuthority: true, signedBy })
  const authority = new CertificateAuthority(own)
  const issue = async (request: CertificateRequest): Promise<IssuedCertificate> => {
    const { certificate, key } = await CertificateAuthority.prototype.issue.call(authority, request)
    return { certificate: certificate + own.certificate, key }
  }
  return Object.assign(authority, { issue })
}

/** As the hub counts it, in milliseconds since the epoch. */
export function validityOf({ certificate }: Pick<IssuedCertificate, 'certificate'>): {
  readonly validFrom: number
  readonly validTo: number
} {
  const { validFromDate, validToDate } = new X509Certificate(certificate)
  return { validFrom: validFromDate.getTime(), validTo: validToDate.getTime() }
}
