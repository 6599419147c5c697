import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { now } from '../../base/clock.ts'
import { canonical } from '../../base/listening-sockets.ts'
import type { IssuedCertificate } from '../../certificates/authority.ts'
import { pemOfKey } from '../../certificates/keys.ts'
import { isForNames } from '../../certificates/serving-certificate.ts'
import type { StoredPair } from '../../certificates/stored-pair.ts'
import { outsideValidity } from '../../certificates/validity.ts'
import { certificatesIn } from '../../config/bootstrap.ts'
import type { ApiCall } from './api-call.ts'
import {
  CertificateRenewal,
  RotationTime,
  usualRenewalPace,
  type RenewalAttempt,
  type RenewalPace,
} from './certificate-renewal.ts'
import { RequestDenied, signedCertificate, type CertificateSpec } from './signed-certificate.ts'

export interface RequestedServingOptions {
  readonly nodeName: string
  readonly signer: string
  /** Besides `system:nodes`. */
  readonly organizations: readonly string[]
  /** DNS names and addresses; `undefined`: not known yet, so that none is requested. */
  readonly names: () => readonly string[] | undefined
  readonly stored: StoredPair
  /** The authorities that pods trust, PEM; `undefined`: they are not known. */
  readonly authorities: () => string | undefined
  /** Whether one is requested from the start; absent: it is. */
  readonly isNeeded?: boolean
  /** Makes requests as the node, which `signal` gives up; read for each attempt. */
  readonly call: (signal: AbortSignal) => ApiCall
  /** Called with the pair that is to be shown from now on; `undefined`: there is none valid now. */
  readonly onChange: (pair: IssuedCertificate | undefined) => void
  /** Called with each new certificate, PEM, when it is stored. */
  readonly onObtained: (certificate: string) => void
  /** Called with each reason why there is no new certificate yet, once while it stays the same. */
  readonly onFailure: (why: string) => void
  readonly pace?: RenewalPace
}

/**
 * The serving certificate that the hub requests from the cluster, with the node's identity: stored,
 * so that a node which boots without a link has it, and rotated in time. The last one that is valid
 * by this node's clock is shown until the next one is on the disk.
 */
export class RequestedServingCertificate implements AsyncDisposable {
  readonly #options: RequestedServingOptions
  readonly #rotation = new RotationTime()
  readonly #renewal: CertificateRenewal
  #isNeeded: boolean
  #shown: string | undefined
  /** The authorities without the signer. */
  #othersThanSigner: string | undefined

  constructor(options: RequestedServingOptions) {
    const { pace = usualRenewalPace } = options
    this.#options = options
    this.#isNeeded = options.isNeeded ?? true
    this.#renewal = new CertificateRenewal({
      dueMs: () => this.#dueMs(),
      obtain: (attempt) => this.#obtain(attempt),
      onFailure: options.onFailure,
      pace,
    })
  }

  /** The certificate that is shown, PEM; `undefined`: none. */
  get certificate(): string | undefined {
    return this.#shown
  }

  /** Why there is no new certificate although one is due; `undefined`: none is, or none failed. */
  get fault(): string | undefined {
    return this.#renewal.fault
  }

  /** Whether a certificate is requested from now on; one that is stored is shown in any case. */
  need(isNeeded: boolean): void {
    this.#isNeeded = isNeeded
    if (isNeeded) this.wake()
  }

  /** To be called when an attempt may succeed that failed before: it is made now. */
  wake(): void {
    this.#renewal.wake()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#renewal[Symbol.asyncDispose]()
  }

  #dueMs(): number {
    const pair = this.#options.stored.read()
    this.#show(pair)
    const names = this.#options.names()
    if (!this.#isNeeded || names === undefined) return Infinity
    if (pair === undefined || !isForNames(pair.certificate, names)) return 0
    if (this.#isWithdrawn(pair.certificate)) return 0
    return this.#rotation.untilDue(pair.certificate)
  }

  /**
   * Whether pods no longer trust the authority that signed a certificate, as after a rotation of
   * the cluster's CA. Where they do not trust the signer either, one is requested once.
   */
  #isWithdrawn(certificate: string): boolean {
    const authorities = this.#options.authorities()
    if (authorities === undefined || authorities === this.#othersThanSigner) return false
    return !isOfAuthorities(certificate, authorities)
  }

  async #obtain({ signal, patienceMs, wasDenied }: RenewalAttempt): Promise<void> {
    const { stored, call, onObtained } = this.#options
    const authorities = this.#options.authorities()
    const names = this.#options.names() ?? []
    if (wasDenied) await stored.forgetKey()
    const key = await stored.nextKey()
    const certificate = await signedCertificate(call(signal), key, this.#specFor(names), {
      patienceMs,
      signal,
    })
    if (!isForNames(certificate, names))
      throw new RequestDenied('the signed certificate is for other names than the request')
    const pair = { certificate, key: pemOfKey(key) }
    await stored.replace(pair)
    const isOther = authorities !== undefined && !isOfAuthorities(certificate, authorities)
    this.#othersThanSigner = isOther ? authorities : undefined
    this.#show(pair)
    onObtained(certificate)
  }

  #specFor(names: readonly string[]): CertificateSpec {
    const { nodeName, organizations, signer } = this.#options
    return {
      signerName: signer,
      usages: ['digital signature', 'server auth'],
      commonName: `system:node:${nodeName}`,
      organizations: [...new Set(['system:nodes', ...organizations])],
      dnsNames: names.filter((name) => isIP(name) === 0),
      ipAddresses: names.filter((name) => isIP(name) > 0).map(canonical),
    }
  }

  #show(pair: IssuedCertificate | undefined): void {
    const isValid =
      pair !== undefined &&
      outsideValidity(new X509Certificate(pair.certificate), now()) === undefined
    const shown = isValid ? pair : undefined
    if (shown?.certificate === this.#shown) return
    this.#shown = shown?.certificate
    this.#options.onChange(shown)
  }
}

/** Whether one of the authorities has signed a certificate, or a later one in its chain. */
function isOfAuthorities(chain: string, authorities: string): boolean {
  const issuers = certificatesIn(authorities).map((each) => new X509Certificate(each))
  return certificatesIn(chain)
    .map((each) => new X509Certificate(each))
    .some((each) =>
      issuers.some((issuer) => each.checkIssued(issuer) && each.verify(issuer.publicKey)),
    )
}
