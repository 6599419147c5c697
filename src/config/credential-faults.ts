import { X509Certificate } from 'node:crypto'
import { namesText, outsideValidity, timeText } from '../certificates/validity.ts'
import type { Credentials } from './credentials.ts'

/**
 * Why API servers cannot accept the hub's client certificate at `at` by the node's clock: it has
 * expired, or is not valid yet; `undefined` if its dates are valid, or there is none.
 */
export function certificateFault(
  { certificate, from }: Credentials,
  at: number,
): string | undefined {
  if (!certificate) return undefined
  const outside = outsideValidity(new X509Certificate(certificate.chain), at)
  if (outside === undefined) return undefined
  const where = `file ${from?.certificate ?? 'unknown'}; node clock ${timeText(at)}`
  return `the hub's client certificate ${outside} (${where})`
}

/**
 * A likely reason why an API server answered 401 to these credentials, and a remedy, in one
 * sentence.
 */
export function whyRefused(credentials: Credentials, at: number): string {
  if (credentials.awaited) return 'the hub has no client certificate yet'
  const fault = certificateFault(credentials, at)
  if (fault !== undefined) return `${fault}: renew it there, or set the clock`
  const { certificate, token, from } = credentials
  if (certificate) {
    const leaf = new X509Certificate(certificate.chain)
    const until = timeText(leaf.validToDate.getTime())
    return `the hub's client certificate (${namesText(leaf)}; valid until ${until}; file ${from?.certificate ?? 'unknown'}) is not accepted: does the cluster's client CA sign for that issuer, and is the API server's clock right?`
  }
  if (token) {
    return `the hub's token (file ${from?.token ?? 'unknown'}) is not accepted: it has expired, was deleted, or is another cluster's`
  }
  return 'the hub has no credentials'
}
