import type { IssuedCertificate } from '../../certificates/authority.ts'
import { servingCertificate } from '../../certificates/serving-certificate.ts'
import { publishAuthorities, storedAuthority } from '../../certificates/stored-authority.ts'
import { StoredPair } from '../../certificates/stored-pair.ts'
import {
  followCredentials,
  loadCredentials,
  type CredentialFollower,
} from '../client/credential-follower.ts'
import type { CredentialFiles, Credentials } from '../../config/credentials.ts'
import type { ServingCredentials } from './listener.ts'

export interface DynamicServingOptions {
  /** The folder of the hub's own authority. */
  readonly folder: string
  /** The addresses and names by which clients call the hub. */
  readonly names: readonly string[]
  /** The certificate and key files to use instead of the hub's own. */
  readonly given: { readonly certificate: string; readonly key: string } | undefined
  /** The file with the authorities for client certificates. */
  readonly clientCa: string | undefined
  /** PEM: the authorities for client certificates where no file is given. */
  readonly upstreamCa: string | undefined
  /**
   * Whether a certificate of the cluster is shown once there is one (`useSigned`): then clients
   * are given its authorities together with the hub's own.
   */
  readonly awaitsSigned?: boolean
  /** The one address where it is shown; `undefined`: everywhere. */
  readonly signedFor?: string | undefined
  /** Called after each change, in order. */
  readonly onReplaced: (credentials: ServingCredentials) => void
  readonly onAuthorityMade: () => void
  /** Called when given files have changed and are unusable: the last usable ones stay in force. */
  readonly onUnusable: (cause: unknown) => void
  /** Called when the hub's own certificate cannot be made or stored. */
  readonly onFailure: (cause: unknown) => void
}

/** How often given files are checked. */
const filesMs = 5_000

/**
 * The TLS listener's certificate and authorities for client certificates, which follow their files
 * and the API servers' authorities.
 */
export class DynamicServingCredentials implements Disposable {
  readonly #parts = new DisposableStack()
  readonly #follower: CredentialFollower
  #own: IssuedCertificate | undefined
  #signed: IssuedCertificate | undefined
  #publish: () => void = () => undefined
  #files: Credentials
  #upstreamCa: string | undefined
  readonly #signedFor: string | undefined
  readonly #onFailure: (cause: unknown) => void
  readonly #onReplaced: DynamicServingOptions['onReplaced']

  /** Rejects where given files are unusable, or the authority cannot be written. */
  static async open(options: DynamicServingOptions): Promise<DynamicServingCredentials> {
    using parts = new DisposableStack()
    const serving = parts.use(new DynamicServingCredentials(options))
    if (options.given === undefined) await serving.#useOwn(options)
    parts.move()
    return serving
  }

  private constructor(options: DynamicServingOptions) {
    this.#upstreamCa = options.upstreamCa
    this.#onFailure = options.onFailure
    this.#onReplaced = options.onReplaced
    this.#signedFor = options.signedFor
    const { given, clientCa } = options
    const where: CredentialFiles = {
      kind: 'files',
      ...given,
      ...(clientCa !== undefined && { ca: clientCa }),
    }
    this.#files = loadCredentials(where)
    this.#follower = this.#parts.use(
      followCredentials(
        where,
        this.#files,
        filesMs,
        (files) => {
          this.#files = files
          this.#announce()
        },
        options.onUnusable,
      ),
    )
  }

  async #useOwn(options: DynamicServingOptions): Promise<void> {
    const { folder, names, awaitsSigned, onAuthorityMade, onFailure } = options
    const authority = await storedAuthority(folder, onAuthorityMade)
    if (awaitsSigned) this.#publish = () => publishAuthorities(folder, authority, this.#upstreamCa)
    this.#publish()
    const stored = new StoredPair(folder, 'nodehub-server')
    this.#own = await servingCertificate({ authority, names, stored, onFailure })
  }

  get current(): ServingCredentials {
    const { certificate, ca = this.#upstreamCa } = this.#files
    const own = this.#own ?? {
      certificate: certificate?.chain ?? '',
      key: certificate?.key.reveal() ?? '',
    }
    const [signed, address] = [this.#signed, this.#signedFor]
    return {
      ...(address === undefined ? (signed ?? own) : own),
      ...(signed && address !== undefined && { elsewhere: { address, ...signed } }),
      ...(ca !== undefined && { clientCa: ca }),
    }
  }

  /**
   * Sets the authorities of the API servers, which also verify clients where no file is given for
   * that.
   */
  replaceUpstreamCa(ca: string | undefined): void {
    if (ca === this.#upstreamCa) return
    this.#upstreamCa = ca
    try {
      this.#publish()
    } catch (cause) {
      this.#onFailure(cause)
    }
    this.#announce()
  }

  /** Shows this pair of the cluster instead of the hub's own; `undefined`: the own one again. */
  useSigned(pair: IssuedCertificate | undefined): void {
    this.#signed = pair
    this.#announce()
  }

  /** Checks given files now. */
  check(): void {
    this.#follower.check()
  }

  #announce(): void {
    this.#onReplaced(this.current)
  }

  [Symbol.dispose](): void {
    this.#parts.dispose()
  }
}
