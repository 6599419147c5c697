import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  curve,
  generalNames,
  nameOf,
  privateCryptoKey,
  publicCryptoKey,
  signature,
} from './keys.ts'
import { loadX509 } from './x509.ts'

/** Whom a requested certificate is to identify. */
export interface RequestedSubject {
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly dnsNames?: readonly string[]
  readonly ipAddresses?: readonly string[]
}

/** A new private key. */
export const newKey = (): KeyObject => generateKeyPairSync('ec', curve).privateKey

/** A request (PKCS #10), PEM, for a certificate of this private key. */
export async function signingRequest(key: KeyObject, subject: RequestedSubject): Promise<string> {
  const { Pkcs10CertificateRequestGenerator, SubjectAlternativeNameExtension } = await loadX509()
  const names = generalNames(subject)
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: nameOf(subject.commonName, subject.organizations),
    keys: { privateKey: privateCryptoKey(key), publicKey: publicCryptoKey(createPublicKey(key)) },
    signingAlgorithm: signature,
    ...(names.length > 0 && { extensions: [new SubjectAlternativeNameExtension(names)] }),
  })
  return `${request.toString('pem')}\n`
}
