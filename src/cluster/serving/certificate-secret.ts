import { now, sleep } from '../../base/clock.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { isConflict } from '../api/failure.ts'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { CertificateAuthority, type IssuedCertificate } from '../../certificates/authority.ts'

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
    const secret = await api.get(`${this.#path}/${name}`, { signal })
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

/** The state that the replicas share: the certificate of the webhooks and its CAs. All in PEM. */
export interface ServingState {
  /** All CAs that API servers have to trust now: replicas may still show a former certificate. */
  readonly bundle: readonly string[]
  readonly leaf: IssuedCertificate
}

const commonName = 'nodehub-cluster-ca'

/** How long before its end a certificate is replaced, if it has one: those of 0.2.0 do. */
const leftMs = 30 * 24 * 3_600_000

/**
 * The state that is due at `now`; the same object where nothing is to be done. A certificate has no
 * end, and a CA of its own, whose key is kept nowhere. It is made where there is none that can be
 * used, or for these names: reviews may fail then for the seconds in which API servers get the new
 * bundle.
 */
export async function rotated(
  state: ServingState | undefined,
  names: readonly string[],
  now: number,
): Promise<ServingState> {
  if (state !== undefined && isUsable(state, names, now)) return state
  const authority = await CertificateAuthority.create(commonName)
  const leaf = await authority.issue({
    commonName: names[0] ?? commonName,
    usage: 'server',
    dnsNames: names,
    lifetimeMs: 'always',
  })
  const before = (state?.bundle ?? []).filter(endOf)
  return { bundle: [authority.certificate, ...before], leaf }
}

/**
 * Whether API servers that trust the bundle trust the leaf for these names, its key belongs to it,
 * and it does not end soon.
 */
function isUsable({ bundle, leaf }: ServingState, names: readonly string[], now: number): boolean {
  try {
    const shown = new X509Certificate(leaf.certificate)
    return (
      shown.validToDate.getTime() > now + leftMs &&
      names.every((name) => shown.checkHost(name) !== undefined) &&
      shown.checkPrivateKey(createPrivateKey(leaf.key)) &&
      bundle.some((each) => shown.verify(new X509Certificate(each).publicKey))
    )
  } catch {
    return false
  }
}

/** When a certificate ends; `undefined` where it is none. */
export function endOf(certificate: string): Date | undefined {
  try {
    return new X509Certificate(certificate).validToDate
  } catch {
    return undefined
  }
}

const pemBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g

/**
 * The state in the data of a Secret; `undefined` where it holds none. Defects show when it is
 * renewed.
 */
export function stateOfSecret(data: Readonly<Record<string, string>>): ServingState | undefined {
  const text = (name: string): string => Buffer.from(data[name] ?? '', 'base64').toString()
  if (text('tls.crt') === '') return undefined
  return {
    bundle: [...text('ca.crt').matchAll(pemBlock)].map(([block]) =>
      block.endsWith('\n') ? block : `${block}\n`,
    ),
    leaf: { certificate: text('tls.crt'), key: text('tls.key') },
  }
}

/** The reverse of `stateOfSecret`. */
export const secretData = ({ bundle, leaf }: ServingState): Record<string, string> =>
  Object.fromEntries(
    Object.entries({
      'ca.crt': bundle.join(''),
      'tls.crt': leaf.certificate,
      'tls.key': leaf.key,
    }).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  )
