import { createPrivateKey, X509Certificate } from 'node:crypto'
import { CertificateAuthority, type IssuedCertificate } from '../../certificates/authority.ts'

/** The state that the replicas share: the CA of the webhooks and their leaf. All in PEM. */
export interface ServingState {
  /** All CAs that API servers have to trust now. */
  readonly bundle: readonly string[]
  /** The CA that issued the leaf. */
  readonly signing: IssuedCertificate
  /** When that took over from another, in milliseconds since the epoch; 0: there was none. */
  readonly signingSince: number
  /** The CA that will issue the next leaf, once the bundle has had it for long enough. */
  readonly next?: IssuedCertificate
  readonly leaf: IssuedCertificate
}

const commonName = 'nodehub-cluster-ca'

const dayMs = 24 * 3_600_000

const lifetimes = { authority: 5 * 365 * dayMs, leaf: 90 * dayMs } as const

/**
 * API servers read the configurations within seconds; the rest is time to repair faults that
 * prevent that.
 */
const publishedMs = dayMs

/** The part of a lifetime after which the next certificate is issued. */
const oldAfter = 2 / 3

/**
 * The state that is due at `now`; the same object where nothing is to be done. Unusable parts are
 * made again.
 *
 * The next CA is in the bundle first, and signs a day later. The one before it stays in the bundle
 * until the last leaf it issued has expired: a replica that still serves that leaf is trusted.
 */
export async function rotated(
  state: ServingState | undefined,
  names: readonly string[],
  now: number,
): Promise<ServingState> {
  if (state === undefined || !isUsable(state, now)) return madeAnew(state, names, now)
  const trusted = withoutRetired(await withNext(state, now), now)
  if (trusted.next !== undefined && now - madeAt(trusted.next) >= publishedMs)
    return withLeaf({ ...signedByNext(trusted, trusted.next), signingSince: now }, names)
  return isOld(trusted.leaf, now) || !isFor(trusted.leaf, names)
    ? withLeaf(trusted, names)
    : trusted
}

async function madeAnew(
  state: ServingState | undefined,
  names: readonly string[],
  now: number,
): Promise<ServingState> {
  const signing = await newAuthority()
  // Other replicas may show a leaf of the old CAs until they have read this.
  const before = (state?.bundle ?? []).filter((each) => isCertificate(each) && !hasEnded(each, now))
  const bundle = [signing.certificate, ...before]
  const since = before.length > 0 ? now : 0
  return withLeaf({ bundle, signing, signingSince: since, leaf: signing }, names)
}

async function withNext(state: ServingState, now: number): Promise<ServingState> {
  if (state.next !== undefined || !isOld(state.signing, now)) return state
  const next = await newAuthority()
  return { ...state, next, bundle: [...state.bundle, next.certificate] }
}

function withoutRetired(state: ServingState, now: number): ServingState {
  const current = new Set([state.signing.certificate, state.next?.certificate])
  const retired = now - state.signingSince > lifetimes.leaf
  const bundle = state.bundle.filter((each) => current.has(each) || !retired)
  return bundle.length === state.bundle.length ? state : { ...state, bundle }
}

function signedByNext(state: ServingState, next: IssuedCertificate): ServingState {
  const { next: _, ...rest } = state
  return { ...rest, signing: next }
}

async function withLeaf(state: ServingState, names: readonly string[]): Promise<ServingState> {
  const leaf = await CertificateAuthority.from(commonName, state.signing).issue({
    commonName: names[0] ?? commonName,
    usage: 'server',
    dnsNames: names,
    lifetimeMs: lifetimes.leaf,
  })
  return { ...state, leaf }
}

async function newAuthority(): Promise<IssuedCertificate> {
  const { certificate, key } = await CertificateAuthority.create(commonName, lifetimes.authority)
  return { certificate, key }
}

const parsed = (pem: string): X509Certificate => new X509Certificate(pem)

const madeAt = ({ certificate }: IssuedCertificate): number =>
  parsed(certificate).validFromDate.getTime()

const hasEnded = (certificate: string, now: number): boolean =>
  parsed(certificate).validToDate.getTime() <= now

function isOld({ certificate }: IssuedCertificate, now: number): boolean {
  const { validFromDate, validToDate } = parsed(certificate)
  const [from, to] = [validFromDate.getTime(), validToDate.getTime()]
  return now >= from + (to - from) * oldAfter
}

const isFor = ({ certificate }: IssuedCertificate, names: readonly string[]): boolean =>
  names.every((name) => parsed(certificate).checkHost(name) !== undefined)

function isCertificate(pem: string): boolean {
  try {
    parsed(pem)
    return true
  } catch {
    return false
  }
}

/**
 * Whether API servers that trust the bundle trust the leaf, and the keys belong to their
 * certificates.
 */
function isUsable({ bundle, signing, next, leaf }: ServingState, now: number): boolean {
  try {
    const [authority, shown] = [parsed(signing.certificate), parsed(leaf.certificate)]
    const pairs = [signing, leaf, ...(next ? [next] : [])]
    return (
      pairs.every(({ certificate, key }) =>
        parsed(certificate).checkPrivateKey(createPrivateKey(key)),
      ) &&
      bundle.every(isCertificate) &&
      bundle.includes(signing.certificate) &&
      (next === undefined || bundle.includes(next.certificate)) &&
      shown.verify(authority.publicKey) &&
      !hasEnded(signing.certificate, now) &&
      !hasEnded(leaf.certificate, now)
    )
  } catch {
    return false
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
  const next = text('next.crt')
  return {
    bundle: [...text('ca.crt').matchAll(pemBlock)].map(([block]) =>
      block.endsWith('\n') ? block : `${block}\n`,
    ),
    signing: { certificate: text('signing.crt'), key: text('signing.key') },
    signingSince: Date.parse(text('signing-since')) || 0,
    ...(next !== '' && { next: { certificate: next, key: text('next.key') } }),
    leaf: { certificate: text('tls.crt'), key: text('tls.key') },
  }
}

/** The reverse of `stateOfSecret`. */
export const secretData = (state: ServingState): Record<string, string> =>
  Object.fromEntries(
    Object.entries({
      'ca.crt': state.bundle.join(''),
      'signing.crt': state.signing.certificate,
      'signing.key': state.signing.key,
      'signing-since': new Date(state.signingSince).toISOString(),
      'next.crt': state.next?.certificate ?? '',
      'next.key': state.next?.key ?? '',
      'tls.crt': state.leaf.certificate,
      'tls.key': state.leaf.key,
    }).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  )
