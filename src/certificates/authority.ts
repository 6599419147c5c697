import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { Extension, JsonName, Name } from '@peculiar/x509'
import { now } from '../base/clock.ts'
import {
  curve,
  generalNames,
  nameOf,
  pemOfKey,
  privateCryptoKey,
  publicCryptoKey,
  signature,
} from './keys.ts'
import { loadX509 } from './x509.ts'

/** The subject and usage of a certificate. */
export interface CertificateRequest {
  readonly commonName: string
  readonly organizations?: readonly string[]
  readonly usage: 'client' | 'server'
  readonly dnsNames?: readonly string[]
  readonly ipAddresses?: readonly string[]
  /** From now; `always`: at any time, whatever the clock says. Default: a year. */
  readonly lifetimeMs?: number | 'always'
}

/** A certificate and its key, both PEM. */
export interface IssuedCertificate {
  readonly certificate: string
  readonly key: string
}

const year = 365 * 24 * 3600 * 1000

/** Clocks differ: a certificate is valid from a little before its creation. */
const backdatedMs = 5 * 60 * 1000

/** RFC 5280 section 4.1.2.5: it means no expiry. */
export const noEnd = Date.UTC(9999, 11, 31, 23, 59, 59)

/** Without an end from the time of a clock without a battery on. */
const validFor = (lifetimeMs: number | 'always') =>
  lifetimeMs === 'always'
    ? { notBefore: new Date(0), notAfter: new Date(noEnd) }
    : { notBefore: new Date(now() - backdatedMs), notAfter: new Date(now() + lifetimeMs) }

/** Issues X.509 certificates (RFC 5280) with ECDSA keys on P-256. */
export class CertificateAuthority {
  /** Its own certificate, PEM. */
  readonly certificate: string
  /** Its private key, PEM. */
  readonly key: string

  constructor({ certificate, key }: IssuedCertificate) {
    this.certificate = certificate
    this.key = key
  }

  /** A new one, without expiry unless `lifetimeMs` is given. */
  static async create(commonName: string, lifetimeMs?: number): Promise<CertificateAuthority> {
    const validity = validFor(lifetimeMs ?? 'always')
    const x509 = await loadX509()
    const { publicKey, privateKey } = generateKeyPairSync('ec', curve)
    const flags = x509.KeyUsageFlags
    const certificate = await signed({
      subject: nameOf(commonName),
      issuer: nameOf(commonName),
      publicKey,
      signedBy: privateKey,
      validity,
      extensions: [
        new x509.KeyUsagesExtension(
          flags.digitalSignature | flags.keyCertSign | flags.cRLSign,
          true,
        ),
        new x509.BasicConstraintsExtension(true, undefined, true),
      ],
    })
    return new CertificateAuthority({ certificate, key: pemOfKey(privateKey) })
  }

  /** A new key and a certificate for it. */
  async issue(request: CertificateRequest): Promise<IssuedCertificate> {
    const { publicKey, privateKey } = generateKeyPairSync('ec', curve)
    return { certificate: await this.certify(publicKey, request), key: pemOfKey(privateKey) }
  }

  /** A certificate, PEM, for the key of a requester. */
  async certify(publicKey: KeyObject, request: CertificateRequest): Promise<string> {
    const validity = validFor(request.lifetimeMs ?? year)
    const x509 = await loadX509()
    const { organizations, usage } = request
    const { serverAuth, clientAuth } = x509.ExtendedKeyUsage
    const names = generalNames(request)
    return signed({
      subject: nameOf(request.commonName, organizations),
      // Byte for byte as in the authority's certificate, which Go compares.
      issuer: new x509.X509Certificate(this.certificate).subjectName,
      publicKey,
      signedBy: createPrivateKey(this.key),
      validity,
      extensions: [
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([usage === 'server' ? serverAuth : clientAuth]),
        new x509.BasicConstraintsExtension(false, undefined, true),
        ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      ],
    })
  }
}

interface Unsigned {
  readonly subject: JsonName
  readonly issuer: JsonName | Name
  readonly publicKey: KeyObject
  readonly signedBy: KeyObject
  readonly validity: ReturnType<typeof validFor>
  readonly extensions: readonly Extension[]
}

/** PEM, with the identifiers of both keys. */
async function signed(unsigned: Unsigned): Promise<string> {
  const {
    X509CertificateGenerator,
    SubjectKeyIdentifierExtension,
    AuthorityKeyIdentifierExtension,
  } = await loadX509()
  const { subject, issuer, signedBy, validity, extensions } = unsigned
  const publicKey = publicCryptoKey(unsigned.publicKey)
  const certificate = await X509CertificateGenerator.create({
    subject,
    issuer,
    publicKey,
    signingKey: privateCryptoKey(signedBy),
    signingAlgorithm: signature,
    ...validity,
    extensions: [
      ...extensions,
      await SubjectKeyIdentifierExtension.create(publicKey),
      await AuthorityKeyIdentifierExtension.create(publicCryptoKey(createPublicKey(signedBy))),
    ],
  })
  return `${certificate.toString('pem')}\n`
}
