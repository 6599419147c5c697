import { now, sleep } from '../../base/clock.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { isConflict } from '../api/failure.ts'
import { rotated, secretData, stateOfSecret, type ServingState } from './rotation.ts'

export interface CertificateSecretOptions {
  readonly api: ApiServer
  readonly namespace: string
  /** Of the Secret. */
  readonly name: string
  /** The DNS names of the leaf. */
  readonly names: readonly string[]
  readonly onRenewed: (state: ServingState) => void
  readonly onFailure: (cause: unknown) => void
}

/** How often the Secret is read. */
const resyncMs = 10_000

/** The pause after a failure, or after a write of another replica. */
const retryMs = 1_000

/**
 * The CA and the serving certificate that all replicas share in a Secret. Each replica may make
 * them: one whose write conflicts reads the other's result. All read the Secret every ten seconds,
 * and serve what it contains.
 */
export class CertificateSecret implements AsyncDisposable {
  readonly #options: CertificateSecretOptions
  readonly #path: string
  readonly #stopped = new AbortController()
  readonly #first = Promise.withResolvers<void>()
  readonly #running: Promise<void>
  #state: ServingState | undefined

  constructor(options: CertificateSecretOptions) {
    this.#options = options
    this.#path = `/api/v1/namespaces/${options.namespace}/secrets`
    this.#running = this.#follow(this.#stopped.signal)
  }

  /** Resolves when there is something to show. */
  get ready(): Promise<void> {
    return this.#first.promise
  }

  /** `undefined` before there is any. */
  get state(): ServingState | undefined {
    return this.#state
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const isRead = await this.#read(signal).catch((cause: unknown) => {
        if (!isConflict(cause) && !signal.aborted) this.#options.onFailure(cause)
        return false
      })
      await sleep(isRead ? resyncMs : retryMs, signal)
    }
  }

  async #read(signal: AbortSignal): Promise<true> {
    const { api, name, names, onRenewed } = this.#options
    const secret = await api.get(`${this.#path}/${name}`, signal)
    const before = secret && stateOfSecret(objectAt(secret, 'data') as Record<string, string>)
    const state = await rotated(before, names, now())
    if (state !== before) {
      await this.#write(state, textAt(secret, 'metadata', 'resourceVersion'))
      onRenewed(state)
    }
    this.#state = state
    this.#first.resolve()
    return true
  }

  /** `resourceVersion`: of the Secret that was read; '': there was none. */
  async #write(state: ServingState, resourceVersion: string): Promise<void> {
    const { api, namespace, name } = this.#options
    const data = secretData(state)
    if (resourceVersion === '') {
      const metadata = { name, namespace }
      const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data }
      await api.create(this.#path, secret)
      return
    }
    // The key of a CA, which 0.2.0 kept there.
    const gone = { 'signing.crt': null, 'signing.key': null }
    const patch = { metadata: { resourceVersion }, data: { ...data, ...gone } }
    await api.patch(`${this.#path}/${name}`, patch)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    await this.#running
  }
}
