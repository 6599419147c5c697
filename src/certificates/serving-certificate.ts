import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { noEnd, type CertificateAuthority, type IssuedCertificate } from './authority.ts'
import type { StoredPair } from './stored-pair.ts'

export interface ServingCertificateOptions {
  readonly authority: CertificateAuthority
  /** Addresses or DNS names. */
  readonly names: readonly string[]
  /** Where the certificate is kept for the next start, which makes none then. */
  readonly stored: StoredPair
  /** Called when the certificate cannot be stored, in which case it is used all the same. */
  readonly onFailure: (cause: unknown) => void
}

/**
 * The stored serving certificate, if it is of this authority and for these names; else a new one.
 * As its authority it has no end, and is valid while a clock is wrong: its key is beside that of
 * the authority, and worth no less.
 */
export async function servingCertificate(
  options: ServingCertificateOptions,
): Promise<IssuedCertificate> {
  const { authority, names, stored, onFailure } = options
  const before = stored.read()
  if (before && isOf(before, options)) return before
  const pair = await authority.issue({
    commonName: 'nodehub',
    usage: 'server',
    dnsNames: names.filter((name) => !isAddress(name)),
    ipAddresses: names.filter(isAddress),
    lifetimeMs: 'always',
  })
  await stored.replace(pair).catch(onFailure)
  return pair
}

/** Not one with an end, which earlier releases made. */
function isOf(
  { certificate }: IssuedCertificate,
  { authority, names }: ServingCertificateOptions,
): boolean {
  const leaf = new X509Certificate(certificate)
  return (
    leaf.validToDate.getTime() === noEnd &&
    leaf.verify(new X509Certificate(authority.certificate).publicKey) &&
    isForNames(certificate, names)
  )
}

/** Whether a certificate, PEM, is for these addresses and DNS names, and no others. */
export function isForNames(certificate: string, names: readonly string[]): boolean {
  const leaf = new X509Certificate(certificate)
  const isFor = (name: string): boolean =>
    (isAddress(name) ? leaf.checkIP(name) : leaf.checkHost(name)) !== undefined
  return (
    names.every(isFor) &&
    (leaf.subjectAltName ?? '').split(', ').filter(Boolean).length === names.length
  )
}

const isAddress = (name: string): boolean => isIP(name) !== 0
