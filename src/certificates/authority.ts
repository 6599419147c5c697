import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  randomBytes,
  sign,
  X509Certificate,
  type KeyObject,
} from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { ipv4Bytes, ipv6Bytes } from '../base/ip-bytes.ts'
import { now } from '../base/clock.ts'
import * as der from './der.ts'

/** The subject and usage of a certificate. */
export interface CertificateRequest {
  readonly commonName: string
  readonly organizations?: readonly string[]
  readonly usage: 'client' | 'server' | 'both'
  readonly dnsNames?: readonly string[]
  readonly ipAddresses?: readonly string[]
  /** From now. Default: a year. */
  readonly lifetimeMs?: number
}

/** A certificate and its key, both PEM. */
export interface IssuedCertificate {
  readonly certificate: string
  readonly key: string
}

const year = 365 * 24 * 3600 * 1000

/** Clocks differ: a certificate is valid from a little before its creation. */
const backdatedMs = 5 * 60 * 1000

/** In milliseconds since the epoch. */
interface Validity {
  readonly from: number
  readonly to: number
}

/**
 * RFC 5280 section 4.1.2.5: this end means no expiry. The start is the time of a clock without a
 * battery.
 */
const always: Validity = { from: 0, to: Date.UTC(9999, 11, 31, 23, 59, 59) }

const validFor = (lifetimeMs: number | undefined): Validity =>
  lifetimeMs === undefined ? always : { from: now() - backdatedMs, to: now() + lifetimeMs }

const oid = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
}

/** Issues X.509 certificates (RFC 5280) with ECDSA keys on P-256. */
export class CertificateAuthority {
  /** Its own certificate, PEM. */
  readonly certificate: string
  /** Its private key, PEM. */
  readonly key: string
  readonly #key: KeyObject
  readonly #subject: Buffer
  readonly #keyId: Buffer

  /** `from`: an existing authority; else a new one, without expiry unless `lifetimeMs` is given. */
  constructor(commonName: string, from?: IssuedCertificate, lifetimeMs?: number) {
    const pair = from ? undefined : generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#key = pair?.privateKey ?? createPrivateKey(from?.key ?? '')
    const publicKey = createPublicKey(this.#key)
    this.#keyId = keyIdOf(publicKey)
    this.#subject = nameOf(commonName, [])
    this.key = pemOfKey(this.#key)
    this.certificate = from?.certificate ?? this.#ownCertificate(publicKey, validFor(lifetimeMs))
    if (from && new X509Certificate(from.certificate).subject !== `CN=${commonName}`) {
      throw new Error('the certificate of the authority has another name')
    }
  }

  /** A new key and a certificate for it. */
  issue(request: CertificateRequest): IssuedCertificate {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    return { certificate: this.certify(publicKey, request), key: pemOfKey(privateKey) }
  }

  /** A certificate, PEM, for the key of a requester. */
  certify(publicKey: KeyObject, request: CertificateRequest): string {
    const purposes = [
      ...(request.usage === 'client' ? [] : [oid.serverAuth]),
      ...(request.usage === 'server' ? [] : [oid.clientAuth]),
    ]
    const names = alternativeNames(request)
    return this.#signed(
      nameOf(request.commonName, request.organizations ?? []),
      publicKey,
      validFor(request.lifetimeMs ?? year),
      [
        // digitalSignature
        extension(oid.keyUsage, der.namedBits([0]), true),
        extension(oid.extendedKeyUsage, der.sequence(...purposes.map(der.objectIdentifier))),
        extension(oid.basicConstraints, der.sequence(), true),
        ...(names.length > 0 ? [extension(oid.subjectAltName, der.sequence(...names))] : []),
      ],
    )
  }

  #ownCertificate(publicKey: KeyObject, validity: Validity): string {
    return this.#signed(this.#subject, publicKey, validity, [
      // digitalSignature, keyCertSign, cRLSign
      extension(oid.keyUsage, der.namedBits([0, 5, 6]), true),
      extension(oid.basicConstraints, der.sequence(der.yes), true),
    ])
  }

  #signed(
    subject: Buffer,
    publicKey: KeyObject,
    validity: Validity,
    extensions: readonly Buffer[],
  ): string {
    const algorithm = der.sequence(der.objectIdentifier(oid.ecdsaWithSha256))
    const keyIds = [
      extension(oid.subjectKeyId, der.octets(keyIdOf(publicKey))),
      extension(oid.authorityKeyId, der.sequence(der.implicit(0, this.#keyId))),
    ]
    const body = der.sequence(
      der.explicit(0, der.integer(Buffer.from([2]))),
      der.integer(serialNumber()),
      algorithm,
      this.#subject,
      der.sequence(der.time(validity.from), der.time(validity.to)),
      subject,
      publicKey.export({ type: 'spki', format: 'der' }),
      der.explicit(3, der.sequence(...extensions, ...keyIds)),
    )
    const signature = sign('sha256', body, this.#key)
    return pem('CERTIFICATE', der.sequence(body, algorithm, der.bits(signature)))
  }
}

/** Positive, and no longer than the twenty bytes RFC 5280 allows. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes
}

/** RFC 5280 section 4.2.1.2: the hash of the key's bits. */
function keyIdOf(publicKey: KeyObject): Buffer {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const point = [Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]
  return hash('sha1', Buffer.concat(point), 'buffer')
}

/** Organizations first: some parsers take the last common name for the whole. */
const nameOf = (commonName: string, organizations: readonly string[]): Buffer =>
  der.sequence(
    ...organizations.map((name) => attribute(oid.organization, name)),
    attribute(oid.commonName, commonName),
  )

const attribute = (type: string, value: string): Buffer =>
  der.set(der.sequence(der.objectIdentifier(type), der.utf8(value)))

const extension = (type: string, value: Buffer, critical = false): Buffer =>
  der.sequence(der.objectIdentifier(type), ...(critical ? [der.yes] : []), der.octets(value))

function alternativeNames({ dnsNames = [], ipAddresses = [] }: CertificateRequest): Buffer[] {
  return [
    ...dnsNames.map((name) => der.implicit(2, Buffer.from(name, 'latin1'))),
    ...ipAddresses.map((address) => der.implicit(7, addressBytes(address))),
  ]
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return ipv4Bytes(address)
  if (!isIPv6(address)) throw new Error(`${address} is no IP address`)
  return ipv6Bytes(address)
}

const pemOfKey = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()

const pem = (label: string, content: Buffer): string => {
  const lines = content.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
