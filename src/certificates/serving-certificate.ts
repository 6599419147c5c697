import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { every, now } from '../base/clock.ts'
import type { CertificateAuthority, IssuedCertificate } from './authority.ts'
import type { StoredPair } from './stored-pair.ts'

const dayMs = 24 * 3_600_000

/** The lifetime of a serving certificate, and its age at rotation. */
const lifetimeMs = 30 * dayMs
const renewedAfterMs = 20 * dayMs

/**
 * The interval of checks: a clock that is corrected after the start may put the certificate in the
 * past or the future.
 */
const lookMs = 60_000

export interface ServingCertificateOptions {
  readonly authority: CertificateAuthority
  /** Addresses or DNS names. */
  readonly names: readonly string[]
  /** Where the certificate is kept for the next start, which makes none then. */
  readonly stored: StoredPair
  /** Called for each certificate after the first. */
  readonly onRenewed: (pair: IssuedCertificate) => void
  /** Called when a certificate cannot be made, or stored, in which case it is used all the same. */
  readonly onFailure: (cause: unknown) => void
}

/** A serving certificate from `authority`, rotated long before it expires. */
export class ServingCertificate implements Disposable {
  readonly #options: ServingCertificateOptions
  readonly #timer: Disposable
  #pair: IssuedCertificate
  #renewing: Promise<void> | undefined

  private constructor(options: ServingCertificateOptions, pair: IssuedCertificate) {
    this.#options = options
    this.#pair = pair
    this.#timer = every(lookMs, () => void this.renewIfDue(now()))
  }

  /** The stored certificate, if it is for these names and not due for rotation; else a new one. */
  static async open(options: ServingCertificateOptions): Promise<ServingCertificate> {
    const stored = options.stored.read()
    const isUsable = stored && isOf(stored, options) && !isDue(stored, now())
    return new ServingCertificate(options, isUsable ? stored : await issued(options))
  }

  get pair(): IssuedCertificate {
    return this.#pair
  }

  /** Rotates the certificate if it is due at `time`. */
  async renewIfDue(time: number): Promise<void> {
    if (!isDue(this.#pair, time)) return
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined))
    await this.#renewing
  }

  async #renew(): Promise<void> {
    try {
      this.#pair = await issued(this.#options)
      this.#options.onRenewed(this.#pair)
    } catch (cause) {
      this.#options.onFailure(cause)
    }
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]()
  }
}

/** A certificate from the future, too: the clock has been set back. */
function isDue({ certificate }: IssuedCertificate, time: number): boolean {
  const age = time - new X509Certificate(certificate).validFromDate.getTime()
  return age < 0 || age >= renewedAfterMs
}

const isOf = (
  { certificate }: IssuedCertificate,
  { authority, names }: ServingCertificateOptions,
): boolean =>
  new X509Certificate(certificate).verify(new X509Certificate(authority.certificate).publicKey) &&
  isForNames(certificate, names)

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

async function issued(options: ServingCertificateOptions): Promise<IssuedCertificate> {
  const { authority, names, stored, onFailure } = options
  const pair = await authority.issue({
    commonName: 'nodehub',
    usage: 'server',
    dnsNames: names.filter((name) => !isAddress(name)),
    ipAddresses: names.filter(isAddress),
    lifetimeMs,
  })
  await stored.replace(pair).catch(onFailure)
  return pair
}

const isAddress = (name: string): boolean => isIP(name) !== 0
