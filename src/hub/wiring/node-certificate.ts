import type { Logger } from 'pino'
import { endText } from '../../certificates/validity.ts'
import type { BootstrapToken } from '../../config/bootstrap.ts'
import { kubeletCredentials } from '../../config/credentials.ts'
import type { LiveConfig, StartConfig } from '../../config/hub-config.ts'
import { NodeCertificate } from '../../http/client/node-certificate.ts'
import type { Cloud } from '../upstream/cloud.ts'

interface Dependencies {
  readonly cloud: Cloud
  /** Reads the files of the credentials again. */
  readonly onStored: () => void
  readonly log: Logger
}

/** The certificate that the hub obtains from the cluster while the configuration gives it none. */
export class ObtainedCertificate implements AsyncDisposable {
  readonly #config: StartConfig
  readonly #live: () => LiveConfig
  readonly #dependencies: Dependencies
  #current: NodeCertificate | undefined

  constructor(config: StartConfig, live: () => LiveConfig, dependencies: Dependencies) {
    this.#config = config
    this.#live = live
    this.#dependencies = dependencies
    this.reconfigure()
  }

  /** To be called when the live configuration has changed. */
  reconfigure(): void {
    if (this.#live().bootstrap === undefined) void this.#stop()
    else if (this.#current === undefined) this.#current = this.#made()
    else this.#current.wake()
  }

  /** Why there is no certificate, or no new one. */
  get fault(): string | undefined {
    return this.#current?.fault
  }

  /** To be called when the API servers can be reached again. */
  wake(): void {
    this.#current?.wake()
  }

  /** False where credentials are given, and no token is used. */
  async replaceToken(token: BootstrapToken): Promise<boolean> {
    await this.#current?.replaceToken(token)
    return this.#current !== undefined
  }

  #made(): NodeCertificate {
    const { nodeName, rootDir } = this.#config
    const { cloud, onStored, log } = this.#dependencies
    return new NodeCertificate({
      nodeName,
      rootDir,
      servers: () => this.#live().serverAddresses,
      bootstrap: () => this.#live().bootstrap ?? nothing,
      kubelet: kubeletCredentials,
      isRefused: () => cloud.refusal !== undefined,
      onStored,
      onObtained: (certificate) => {
        log.info(`the hub has obtained a client certificate, valid until ${endText(certificate)}`)
      },
      onFailure: (why) =>
        log.warn(`the hub obtains no client certificate, and goes on trying: ${why}`),
      onCaFailure: (why) =>
        log.info(
          `the cluster's CA cannot be compared with the one that is published (docs/keys-and-ca.md), and is later: ${why}`,
        ),
    })
  }

  async #stop(): Promise<void> {
    const current = this.#current
    this.#current = undefined
    await current?.[Symbol.asyncDispose]()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stop()
  }
}

/** While a certificate that is no longer wanted is given up. */
const nothing = { token: undefined, file: undefined, caHashes: [], anyCa: false, ca: undefined }
