import { Broadcast } from '../../base/broadcast.ts'
import { ServingCertificate } from '../../certificates/serving-certificate.ts'
import { storedAuthority } from '../../certificates/stored-authority.ts'
import {
  followCredentials,
  loadCredentials,
  type CredentialFollower,
} from '../client/credential-follower.ts'
import type { CredentialFiles, Credentials } from '../../config/credentials.ts'
import type { SecureListener, ServingCredentials } from './listener.ts'

export interface DynamicServingOptions {
  /** Where the hub's own authority is kept. */
  readonly folder: string
  /** Addresses and names by which clients call the hub. */
  readonly names: readonly string[]
  /** A certificate and key to be shown instead of the hub's own. */
  readonly given: { readonly certificate: string; readonly key: string } | undefined
  /** The file with the authorities for client certificates. */
  readonly clientCa: string | undefined
  /** PEM: the authorities for client certificates where no file is given. */
  readonly upstreamCa: string | undefined
  readonly onAuthorityMade: () => void
  /** Called when given files have changed and cannot be used: the last good ones stay in force. */
  readonly onUnusable: (cause: unknown) => void
}

/** How often given files are looked at. */
const filesMs = 5_000

/**
 * The TLS listener's certificate and its authorities for client certificates, kept current while it
 * runs.
 */
export class DynamicServingCredentials implements Disposable {
  readonly #parts = new DisposableStack()
  readonly #follower: CredentialFollower
  readonly #own: ServingCertificate | undefined
  #files: Credentials
  #upstreamCa: string | undefined
  readonly #replaced = new Broadcast<[ServingCredentials]>()

  /** Throws where given files cannot be used, or the authority cannot be kept. */
  constructor(options: DynamicServingOptions) {
    this.#upstreamCa = options.upstreamCa
    const { given, clientCa, folder, names } = options
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
    if (given === undefined) {
      const authority = storedAuthority(folder, options.onAuthorityMade)
      this.#own = this.#parts.use(new ServingCertificate(authority, names, () => this.#announce()))
    }
  }

  get current(): ServingCredentials {
    const { certificate, ca = this.#upstreamCa } = this.#files
    const pair = this.#own?.pair ?? {
      certificate: certificate?.chain ?? '',
      key: certificate?.key.reveal() ?? '',
    }
    return { ...pair, ...(ca !== undefined && { clientCa: ca }) }
  }

  /** Tells `listener` of every change from now on, after those that were told before. */
  applyTo(listener: Pick<SecureListener, 'replaceCredentials'>): void {
    this.#replaced.listen((credentials) => listener.replaceCredentials(credentials))
  }

  /**
   * Takes over changed authorities of the API servers, which vouch for clients too where no file is
   * given for that.
   */
  replaceUpstreamCa(ca: string | undefined): void {
    if (ca === this.#upstreamCa) return
    this.#upstreamCa = ca
    this.#announce()
  }

  /** Looks at given files now. */
  check(): void {
    this.#follower.check()
  }

  #announce(): void {
    this.#replaced.announce(this.current)
  }

  [Symbol.dispose](): void {
    this.#parts.dispose()
  }
}
