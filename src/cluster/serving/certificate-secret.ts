import { every, now, sleep } from '../../base/clock.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { isConflict } from '../api/failure.ts'
import { secretData, rotated, stateOfSecret, type ServingState } from './rotation.ts'

export interface CertificateSecretOptions {
  readonly api: ApiServer
  readonly namespace: string
  /** Of the Secret. */
  readonly name: string
  /** The DNS names of the leaf. */
  readonly names: readonly string[]
  readonly onRenewed?: (state: ServingState) => void
  /** Called when the leaf or the CA bundle has changed. */
  readonly onChange?: () => void
  readonly onFailure?: (cause: unknown) => void
}

/** How often the Secret is read, and rotation is checked. */
const resyncMs = 10_000

interface SecretState {
  readonly resourceVersion: string
  readonly state: ServingState | undefined
}

/**
 * The CA and the serving certificate that all replicas share in a Secret. Each replica may renew
 * them: one whose write conflicts reads the other's result. All read the Secret every ten seconds,
 * and serve what it contains.
 */
export class CertificateSecret implements AsyncDisposable {
  readonly #options: CertificateSecretOptions
  readonly #stopped = new AbortController()
  readonly #first = Promise.withResolvers<void>()
  #timer: Disposable
  #state: ServingState | undefined
  #running: Promise<void> | undefined

  constructor(options: CertificateSecretOptions) {
    this.#options = options
    this.#timer = every(resyncMs, () => void this.reconcile())
    void this.reconcile()
  }

  /** Resolves when there is something to show. */
  get ready(): Promise<void> {
    return this.#first.promise
  }

  /** `undefined` before there is any. */
  get state(): ServingState | undefined {
    return this.#state
  }

  /** The CA bundle for API servers, PEM. */
  get bundle(): string | undefined {
    return this.#state?.bundle.join('')
  }

  /** Renews the certificates that are due; one run at a time. */
  reconcile(): Promise<void> {
    this.#running ??= this.#reconcile().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #reconcile(): Promise<void> {
    const { signal } = this.#stopped
    // Another replica may keep writing; the next check follows soon.
    for (let tries = 0; tries < 5 && !signal.aborted; tries++) {
      try {
        if (await this.#renew()) return
      } catch (cause) {
        if (signal.aborted) return
        this.#options.onFailure?.(cause)
      }
      await sleep(200 * 2 ** tries, signal)
    }
  }

  /** Whether the certificate that is served now is that of the Secret. */
  async #renew(): Promise<boolean> {
    const { api, namespace, name, names } = this.#options
    const path = `/api/v1/namespaces/${namespace}/secrets`
    const kept = await this.#read(path, name)
    const state = await rotated(kept?.state, names, now())
    if (state === kept?.state) {
      this.#show(state)
      return true
    }
    const data = secretData(state)
    try {
      if (kept === undefined) {
        const metadata = { name, namespace }
        await api.create(path, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data })
      } else {
        const { resourceVersion } = kept
        // The key of a CA, which 0.2.0 kept there.
        const gone = { 'signing.crt': null, 'signing.key': null }
        await api.patch(`${path}/${name}`, {
          metadata: { resourceVersion },
          data: { ...data, ...gone },
        })
      }
    } catch (cause) {
      if (isConflict(cause)) return false
      throw cause
    }
    this.#options.onRenewed?.(state)
    this.#show(state)
    return true
  }

  async #read(path: string, name: string): Promise<SecretState | undefined> {
    const secret = await this.#options.api.get(`${path}/${name}`, this.#stopped.signal)
    return secret && keptOf(secret)
  }

  #show(state: ServingState): void {
    const before = this.#state && JSON.stringify(this.#state)
    this.#state = state
    this.#first.resolve()
    if (before !== JSON.stringify(state)) this.#options.onChange?.()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    this.#timer[Symbol.dispose]()
    await this.#running
  }
}

const keptOf = (secret: JsonObject): SecretState => ({
  resourceVersion: textAt(secret, 'metadata', 'resourceVersion'),
  state: stateOfSecret(objectAt(secret, 'data') as Record<string, string>),
})
