import { createPrivateKey, X509Certificate } from 'node:crypto'
import { CertificateAuthority, type IssuedCertificate } from '../../certificates/authority.ts'

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
