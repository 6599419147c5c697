import { createPrivateKey, X509Certificate } from 'node:crypto'
import { CertificateAuthority, type IssuedCertificate } from '../../certificates/authority.ts'

/** The state that the replicas share: the CA of the webhooks and their leaf. All in PEM. */
export interface ServingState {
  /** All CAs that API servers have to trust now: replicas may still show a leaf of a former one. */
  readonly bundle: readonly string[]
  /** The CA that issued the leaf. */
  readonly signing: IssuedCertificate
  readonly leaf: IssuedCertificate
}

const commonName = 'nodehub-cluster-ca'

const dayMs = 24 * 3_600_000

const lifetimes = { authority: 20 * 365 * dayMs, leaf: 90 * dayMs } as const

/** The part of a lifetime after which the next certificate is issued. */
const oldAfter = 2 / 3

/**
 * The state that is due at `now`; the same object where nothing is to be done. A CA is made where
 * there is none that can be used, and once in thirteen years: reviews may fail then for the seconds
 * in which API servers get the new bundle.
 */
export async function rotated(
  state: ServingState | undefined,
  names: readonly string[],
  now: number,
): Promise<ServingState> {
  if (state === undefined || !isUsable(state, now) || isOld(state.signing, now))
    return madeAnew(state, names, now)
  return isOld(state.leaf, now) || !isFor(state.leaf, names) ? withLeaf(state, names) : state
}

async function madeAnew(
  state: ServingState | undefined,
  names: readonly string[],
  now: number,
): Promise<ServingState> {
  const signing = await newAuthority()
  const before = (state?.bundle ?? []).filter((each) => isCertificate(each) && !hasEnded(each, now))
  return withLeaf({ bundle: [signing.certificate, ...before], signing, leaf: signing }, names)
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
function isUsable({ bundle, signing, leaf }: ServingState, now: number): boolean {
  try {
    const [authority, shown] = [parsed(signing.certificate), parsed(leaf.certificate)]
    return (
      [signing, leaf].every(({ certificate, key }) =>
        parsed(certificate).checkPrivateKey(createPrivateKey(key)),
      ) &&
      bundle.every(isCertificate) &&
      bundle.includes(signing.certificate) &&
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
  return {
    bundle: [...text('ca.crt').matchAll(pemBlock)].map(([block]) =>
      block.endsWith('\n') ? block : `${block}\n`,
    ),
    signing: { certificate: text('signing.crt'), key: text('signing.key') },
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
      'tls.crt': state.leaf.certificate,
      'tls.key': state.leaf.key,
    }).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  )
