import { isIP } from 'node:net'
import { every, now } from '../base/clock.ts'
import type { CertificateAuthority, IssuedCertificate } from './authority.ts'

const dayMs = 24 * 3_600_000

/** The lifetime of a serving certificate, and its age at rotation. */
const lifetimeMs = 30 * dayMs
const renewedAfterMs = 20 * dayMs

/**
 * The interval of checks: a clock that is corrected after the start may put the certificate in the
 * past or the future.
 */
const lookMs = 60_000

/**
 * A serving certificate for `names` (addresses or DNS names) from `authority`, rotated long before
 * it expires. Its key is never written to disk. `onRenewed` is called for each certificate after
 * the first.
 */
export class ServingCertificate implements Disposable {
  readonly #authority: CertificateAuthority
  readonly #names: readonly string[]
  readonly #onRenewed: (pair: IssuedCertificate) => void
  readonly #timer: Disposable
  #madeAt: number
  #pair: IssuedCertificate

  constructor(
    authority: CertificateAuthority,
    names: readonly string[],
    onRenewed: (pair: IssuedCertificate) => void,
  ) {
    this.#authority = authority
    this.#names = names
    this.#onRenewed = onRenewed
    this.#madeAt = now()
    this.#pair = this.#issue()
    this.#timer = every(lookMs, () => this.renewIfDue(now()))
  }

  get pair(): IssuedCertificate {
    return this.#pair
  }

  /** Rotates the certificate if it is due at `time`. */
  renewIfDue(time: number): void {
    const age = time - this.#madeAt
    if (age >= 0 && age < renewedAfterMs) return
    this.#madeAt = time
    this.#pair = this.#issue()
    this.#onRenewed(this.#pair)
  }

  #issue(): IssuedCertificate {
    const isAddress = (name: string): boolean => isIP(name) !== 0
    return this.#authority.issue({
      commonName: 'nodehub',
      usage: 'server',
      dnsNames: this.#names.filter((name) => !isAddress(name)),
      ipAddresses: this.#names.filter(isAddress),
      lifetimeMs,
    })
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]()
  }
}
