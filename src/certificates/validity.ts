import { X509Certificate } from 'node:crypto'

/**
 * Why the certificate is not valid at `at` (milliseconds since 1970), as the rest of a sentence;
 * `undefined` if it is.
 */
export function outsideValidity(certificate: X509Certificate, at: number): string | undefined {
  const [from, to] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()]
  if (at > to) return `expired ${timeText(to)}`
  if (at < from) return `is not valid before ${timeText(from)}`
  return undefined
}

/** To the second, in UTC. */
export const timeText = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

/** When a certificate, PEM, ends. Of a chain, the first counts. */
export const endText = (certificate: string): string =>
  timeText(new X509Certificate(certificate).validToDate.getTime())

/** Subject and issuer on one line, the most specific part of each name first. */
export const namesText = ({
  subject,
  issuer,
}: Pick<X509Certificate, 'subject' | 'issuer'>): string =>
  `${nameText(subject)}, issued by ${nameText(issuer)}`

/** Node separates the parts of a name by newlines, the most general first. */
function nameText(name: string | undefined): string {
  const parts = (name ?? '').split('\n').filter(Boolean)
  return parts.length === 0 ? 'without a name' : parts.toReversed().join(', ')
}
