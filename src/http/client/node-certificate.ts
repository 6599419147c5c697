import { writeDurably } from '../../base/durable-file.ts'
import { makeSyncedFolder } from '../../base/folder.ts'
import { Secret } from '../../base/secret.ts'
import { pemOfKey } from '../../certificates/keys.ts'
import { StoredPair } from '../../certificates/stored-pair.ts'
import {
  certificatesIn,
  parseBootstrapToken,
  type BootstrapConfig,
  type BootstrapToken,
} from '../../config/bootstrap.ts'
import {
  isCertificateOf,
  readCredentials,
  type CredentialFiles,
  type Credentials,
} from '../../config/credentials.ts'
import { obtainedFiles } from '../../config/root-dir.ts'
import { messageOf } from '../../config/settings.ts'
import { anyApiCall } from './api-call.ts'
import {
  credentialsInFile,
  credentialsOfToken,
  readText,
  textOf,
  textOfToken,
} from './bootstrap-credentials.ts'
import { caRefresh } from './ca-refresh.ts'
import {
  CertificateRenewal,
  RotationTime,
  usualRenewalPace,
  type RenewalAttempt,
  type RenewalPace,
} from './certificate-renewal.ts'
import {
  nodeClient,
  RequestDenied,
  RequestPending,
  signedCertificate,
  type SigningPatience,
} from './signed-certificate.ts'

export interface NodeCertificateOptions {
  readonly nodeName: string
  readonly rootDir: string
  /** Read for each attempt, as they may change meanwhile. */
  readonly servers: () => readonly URL[]
  /** `undefined`: no certificate is wanted. */
  readonly bootstrap: () => BootstrapConfig | undefined
  /** The kubelet's own certificate, which may stand in for a bootstrap token. */
  readonly kubelet: CredentialFiles
  /** Whether API servers refuse the present certificate, as far as is known. */
  readonly isRefused: () => boolean
  /** Called when a CA or a certificate has been stored: files of the credentials have changed. */
  readonly onStored: () => void
  /** Called with each new certificate, PEM, when it is stored. */
  readonly onObtained: (certificate: string) => void
  /** Called with each reason why there is no new certificate yet, once while it stays the same. */
  readonly onFailure: (why: string) => void
  /** Called with each reason why the CA cannot be followed, once while it stays the same. */
  readonly onCaFailure: (why: string) => void
  readonly pace?: NodeCertificatePace
}

/** Times, in milliseconds. */
export interface NodeCertificatePace extends RenewalPace {
  /** Between two looks at the CA that the cluster publishes. */
  readonly caMs: number
}

const usualPace: NodeCertificatePace = {
  ...usualRenewalPace,
  caMs: 3_600_000,
}

/** The identity with which a request is sent, and which the API server may accept. */
interface Requester {
  readonly name: string
  readonly credentials: (signal: AbortSignal) => Credentials | Promise<Credentials>
}

/** No certificate could be obtained. */
class NoCertificate extends Error {
  readonly code = 'NO_CERTIFICATE'
}

/**
 * The hub's own client certificate: requested from the cluster with a bootstrap token, stored, and
 * rotated in time with itself. Everything is tried again for as long as it takes; the present
 * certificate stays in force until the next one is on the disk. One that has expired, or that API
 * servers refuse, is replaced with a bootstrap token or the kubelet's certificate. Only API servers
 * decide on certificates outside their validity, as the node's clock may be wrong. The CA is
 * followed while the cluster rotates it, unless it is given.
 */
export class NodeCertificate implements AsyncDisposable {
  readonly #options: NodeCertificateOptions
  readonly #stored: StoredPair
  readonly #rotation = new RotationTime()
  readonly #renewal: CertificateRenewal
  readonly #caRefresh: CertificateRenewal
  #caStored: Promise<void> = Promise.resolve()

  constructor(options: NodeCertificateOptions) {
    this.#options = options
    const { pace = usualPace } = options
    const { folder, name } = obtainedFiles(options.rootDir)
    makeSyncedFolder(folder, 0o700)
    this.#stored = new StoredPair(folder, name)
    this.#renewal = new CertificateRenewal({
      dueMs: () => this.#dueMs(),
      obtain: (attempt) => this.#obtain(attempt),
      onFailure: options.onFailure,
      pace,
    })
    this.#caRefresh = caRefresh({
      servers: options.servers,
      present: () => {
        const config = options.bootstrap()
        return config && config.ca === undefined ? this.#ca() : undefined
      },
      store: (ca) => this.#storeCa(ca),
      onFailure: options.onCaFailure,
      everyMs: pace.caMs,
    })
  }

  /** Why there is no new certificate although one is due; `undefined`: none is, or none failed. */
  get fault(): string | undefined {
    return this.#options.bootstrap() && this.#renewal.fault
  }

  /**
   * To be called when an attempt may succeed that failed before, or when `bootstrap` has changed:
   * it is made now.
   */
  wake(): void {
    this.#renewal.wake()
    if (this.#caRefresh.fault !== undefined) this.#caRefresh.wake()
  }

  /**
   * Uses this token from now on, also after a restart, before the configured one. False where no
   * certificate is wanted.
   */
  async replaceToken(token: BootstrapToken): Promise<boolean> {
    if (!this.#options.bootstrap()) return false
    await writeDurably(obtainedFiles(this.#options.rootDir).token, `${textOfToken(token)}\n`)
    this.#renewal.retry()
    this.wake()
    return true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const parts = [this.#renewal, this.#caRefresh]
    await Promise.all(parts.map((each) => each[Symbol.asyncDispose]()))
  }

  #dueMs(): number {
    if (!this.#options.bootstrap()) return Infinity
    const pair = this.#stored.read()
    if (pair === undefined || this.#ca() === undefined || this.#options.isRefused()) return 0
    return this.#rotation.untilDue(pair.certificate)
  }

  async #obtain({ wasDenied, ...patience }: RenewalAttempt): Promise<void> {
    const { signal } = patience
    const failures: string[] = []
    if (wasDenied) await this.#stored.forgetKey()
    for (const { name, credentials } of this.#requesters()) {
      try {
        const shown = await credentials(signal)
        // Callers with tokens wait for it. One of a file may be older than the present one.
        if (shown.ca !== undefined && this.#ca() === undefined) await this.#storeCa(shown.ca)
        return await this.#obtainAs(shown, patience)
      } catch (cause) {
        // Another requester would be denied the same.
        if (cause instanceof RequestDenied) throw cause
        failures.push(`with ${name}: ${messageOf(cause)}`)
        // Another requester would find the same request.
        if (cause instanceof RequestPending) throw new RequestPending(failures.join('; '))
      }
      if (signal.aborted) return
    }
    throw new NoCertificate(failures.join('; ') || nothingToBeginWith)
  }

  async #obtainAs(credentials: Credentials, patience: SigningPatience): Promise<void> {
    const { servers, nodeName, onStored, onObtained } = this.#options
    const key = await this.#stored.nextKey()
    const certificate = await signedCertificate(
      anyApiCall(servers(), credentials, { signal: patience.signal }),
      key,
      nodeClient(nodeName),
      patience,
    )
    await this.#stored.replace({ certificate, key: pemOfKey(key) })
    if (credentials.ca !== undefined) await this.#storeCa(credentials.ca)
    onObtained(certificate)
    onStored()
  }

  /**
   * In the order in which they are tried: those that add least to what the hub trusts come first.
   */
  *#requesters(): Generator<Requester> {
    const { bootstrap, kubelet, nodeName, servers } = this.#options
    const config = bootstrap()
    if (!config) return
    const { file, token } = config
    const [own, ca] = [this.#stored.read(), this.#ca()]
    if (own && ca !== undefined) {
      const certificate = { chain: own.certificate, key: new Secret(own.key) }
      yield {
        name: "the hub's own certificate",
        credentials: () => ({ ca, certificate, files: [] }),
      }
    }
    if (file !== undefined) {
      yield {
        name: `the file ${file}`,
        credentials: (signal) => credentialsInFile(file, servers(), config, signal),
      }
    }
    for (const each of [this.#handedOver(), token]) {
      if (each)
        yield {
          name: `the bootstrap token ${each.id}`,
          credentials: (signal) => credentialsOfToken(each, servers(), config, signal),
        }
    }
    const kubelets = credentialsOfNode(kubelet, nodeName)
    if (kubelets) {
      yield {
        name: "the kubelet's certificate",
        credentials: () => ({ ...kubelets, ...(ca !== undefined && { ca }) }),
      }
    }
  }

  /** The last token that root has handed over while a hub ran. */
  #handedOver(): BootstrapToken | undefined {
    const [line = ''] = (textOf(obtainedFiles(this.#options.rootDir).token) ?? '').split('\n')
    return parseBootstrapToken(line.trim())
  }

  /** The given CA, or the one that was found. */
  #ca(): string | undefined {
    const { bootstrap, rootDir } = this.#options
    const text = textOf(bootstrap()?.ca ?? obtainedFiles(rootDir).ca)
    return text !== undefined && certificatesIn(text).length > 0 ? text : undefined
  }

  /** One at a time. */
  #storeCa(ca: string): Promise<void> {
    const stored = this.#caStored.then(async () => {
      if (ca === this.#ca()) return
      await writeDurably(obtainedFiles(this.#options.rootDir).ca, ca)
      this.#options.onStored()
    })
    this.#caStored = stored.catch(() => undefined)
    return stored
  }
}

const nothingToBeginWith =
  'the hub has no bootstrap token: give --join-token or --bootstrap-file, or hand one over with POST /v1/token'

/** The kubelet's certificate, if it is that of this node; `undefined` where it cannot be read. */
function credentialsOfNode(files: CredentialFiles, nodeName: string): Credentials | undefined {
  try {
    const credentials = readCredentials(files, readText)
    return isCertificateOf(nodeName, credentials.certificate?.chain ?? '') ? credentials : undefined
  } catch {
    return undefined
  }
}
