import { keepProcessAlive, now, sleep } from '../../base/clock.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { isConflict } from '../api/failure.ts'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { CertificateAuthority, type IssuedCertificate } from '../../certificates/authority.ts'
import { blocksIn } from '../../certificates/bundle.ts'

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

/** The serving certificate of the webhooks, and its CA. */
export interface Serving extends AsyncDisposable {
  pair(): IssuedCertificate
  /** PEM; `undefined` where nothing is to be written into configurations. */
  bundle(): string | undefined
}

/**
 * The CA and the serving certificate that all replicas share in a Secret. Each replica may make
 * them: one whose write conflicts reads the other's result. All read the Secret every ten seconds,
 * and serve what it contains. Resolves when there is something to show.
 */
export async function sharedCertificate(options: CertificateSecretOptions): Promise<Serving> {
  // Between two tries there may be no connection, and no timer here keeps the process alive.
  using _waiting = keepProcessAlive()
  const stopped = new AbortController()
  const { signal } = stopped
  const first = Promise.withResolvers<void>()
  let state: ServingState = { bundle: [], leaf: { certificate: '', key: '' } }
  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        state = await readOrMade(options, signal)
        first.resolve()
        await sleep(resyncMs, signal)
      } catch (cause) {
        if (!isConflict(cause) && !signal.aborted) options.onFailure(cause)
        await sleep(retryMs, signal)
      }
    }
  }
  const running = follow()
  await first.promise
  return {
    pair: () => state.leaf,
    bundle: () => state.bundle.join(''),
    [Symbol.asyncDispose]: () => {
      stopped.abort()
      return running
    },
  }
}

async function readOrMade(
  { api, namespace, name, names, onRenewed }: CertificateSecretOptions,
  signal: AbortSignal,
): Promise<ServingState> {
  const path = `/api/v1/namespaces/${namespace}/secrets`
  const secret = await api.get(`${path}/${name}`, { signal })
  const before = secret && stateOfSecret(objectAt(secret, 'data') as Record<string, string>)
  const state = await rotated(before, names, now())
  if (state === before) return state
  const data = secretData(state)
  if (secret === undefined) {
    const metadata = { name, namespace }
    await api.create(path, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data })
  } else {
    const resourceVersion = textAt(secret, 'metadata', 'resourceVersion')
    // The key of a CA, which 0.2.0 kept there.
    const gone = { 'signing.crt': null, 'signing.key': null }
    const patch = { metadata: { resourceVersion }, data: { ...data, ...gone } }
    await api.patch(`${path}/${name}`, patch)
  }
  onRenewed(state)
  return state
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

/**
 * The state in the data of a Secret; `undefined` where it holds none. Defects show when it is
 * renewed.
 */
export function stateOfSecret(data: Readonly<Record<string, string>>): ServingState | undefined {
  const text = (name: string): string => Buffer.from(data[name] ?? '', 'base64').toString()
  if (text('tls.crt') === '') return undefined
  return {
    bundle: blocksIn(text('ca.crt')),
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
