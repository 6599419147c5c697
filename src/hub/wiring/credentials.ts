import { join } from 'node:path'
import type { Logger } from 'pino'
import { now } from '../../base/clock.ts'
import type { Connections } from '../../http/client/connections.ts'
import {
  followCredentials,
  type CredentialFollower,
} from '../../http/client/credential-follower.ts'
import { certificateFault, whyRefused } from '../../config/credential-faults.ts'
import { kubeletCredentials, type Credentials } from '../../config/credentials.ts'
import type { LiveConfig, StartConfig } from '../../config/hub-config.ts'
import type { Cloud } from '../upstream/cloud.ts'
import type { ReadinessCheck } from '../../http/server/ops.ts'
import { DynamicServingCredentials } from '../../http/server/dynamic-serving-credentials.ts'
import type { ServingCredentials } from '../../http/server/listener.ts'
import { servingNames } from './names.ts'
import { endText } from '../../certificates/validity.ts'
import type { BootstrapToken } from '../../config/bootstrap.ts'
import { NodeCertificate } from '../../http/client/node-certificate.ts'

/** How often the credential files are checked for changes. */
const lookMs = 5_000

/**
 * The certificates of the TLS listener, kept current; calls `onReplaced` after each change. Rejects
 * where configured files cannot be used.
 */
export const servingOf = (
  config: StartConfig,
  upstreamCa: string | undefined,
  onReplaced: (credentials: ServingCredentials) => void,
  log: Logger,
) =>
  DynamicServingCredentials.open({
    folder: join(config.rootDir, 'pki'),
    names: servingNames(config),
    given: config.tls.serving,
    awaitsSigned: config.tls.signer !== undefined,
    signedFor: config.tls.signedFor,
    clientCa: config.tls.clientCa,
    upstreamCa,
    onReplaced,
    onAuthorityMade: () =>
      log.warn(
        'a new authority was made for the TLS proxy: its clients must be given pki/ca.crt under --root-dir',
      ),
    onUnusable: (err) =>
      log.error(
        { err },
        "the TLS listener's certificates have changed and cannot be used; the last good ones stay",
      ),
    onFailure: (err) =>
      log.error(
        { err },
        "the TLS listener's own certificate cannot be made or stored: the present one stays, and the next start makes another",
      ),
  })

/**
 * Watches the files of the hub's own credentials; calls `replace` with credentials that differ from
 * `first`, and after each change.
 */
export const followHubCredentials = (
  live: LiveConfig,
  first: Credentials,
  replace: (credentials: Credentials) => void,
  log: Logger,
): CredentialFollower =>
  followCredentials(
    live.credentials,
    first,
    lookMs,
    (changed) => {
      log.info('the credentials have changed')
      logCertificateFault(changed, log)
      replace(changed)
    },
    (err) =>
      log.error(
        { err },
        'the credentials have changed and cannot be used; the last good ones stay',
      ),
  )

/** Logs a client certificate outside its validity period. */
export function logCertificateFault(credentials: Credentials, log: Logger): void {
  const fault = certificateFault(credentials, now())
  if (fault !== undefined) {
    log.error(
      `${fault}: API servers will refuse it; renew it there, or set the clock; the node is answered from the cache meanwhile`,
    )
  }
}

/**
 * Whether API servers accept the hub's own credentials. The check fails readiness while API servers
 * can be reached and all of them refuse, which does not heal by itself. Expiry alone is shown, but
 * does not fail it: offline the hub works as before, and an API server that accepts the certificate
 * knows better than this node's clock. Without a certificate the hub is not ready.
 */
export const certificateCheck = (
  cloud: Cloud,
  connections: Connections,
  obtained: ObtainedCertificate,
): ReadinessCheck => ({
  name: 'certificate',
  check: () => {
    const { credentials } = connections
    const isOwn = credentials.certificate !== undefined || credentials.token !== undefined
    const isRefused = credentials.awaited || (isOwn && cloud.refusal !== undefined)
    const fault = isRefused ? whyRefused(credentials, now()) : certificateFault(credentials, now())
    const why = obtained.fault && `no new one is obtained: ${obtained.fault}`
    return [fault, why].filter((each) => each !== undefined).join('; ') || undefined
  },
  isRequired: () => cloud.refusal !== undefined || connections.credentials.awaited === true,
  remedy: () =>
    'compare the clock (date) and the CA of the cluster: nodehub inspect certificates has every file; where a certificate is requested, approve it (kubectl get csr)',
})

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
