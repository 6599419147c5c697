import { now } from '../../base/clock.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { HeaderList } from '../../http/exchange/headers.ts'

/**
 * Components that print warnings for a person. Others would write one to their log for each
 * request.
 */
const printingWarnings = new Set(['kubectl', 'oc', 'k9s', 'helm'])

/**
 * Adds `Age`: seconds since an API server last confirmed the answer (RFC 9111 section 5.1).
 * `confirmedAt` is in milliseconds since the epoch; 0: not known, no header.
 */
export function withAge(headers: HeaderList, confirmedAt: number): HeaderList {
  if (confirmedAt === 0) return headers
  const seconds = Math.floor((now() - confirmedAt) / 1000)
  return headers.with('Age', String(Math.max(seconds, 0)))
}

/** Whether the component prints warnings for the person who uses it. */
export const isForPerson = ({ component }: { readonly component: string }): boolean =>
  printingWarnings.has(component)

/**
 * Adds `Age`, and for a person a `Warning`, which kubectl prints. The warning has the time and not
 * the age, so that kubectl prints it once for all equally old answers of a command.
 */
export function withStaleness(
  headers: HeaderList,
  exchange: Exchange,
  confirmedAt: number,
): HeaderList {
  const isMarked = confirmedAt !== 0 && isForPerson(exchange)
  return isMarked ? withWarning(headers, confirmedAt) : withAge(headers, confirmedAt)
}

/** Adds `Age` and the `Warning`, which ends with `note`. */
export function withWarning(headers: HeaderList, confirmedAt: number, note = ''): HeaderList {
  const since =
    confirmedAt === 0
      ? 'for an unknown time'
      : `since ${new Date(Math.floor(confirmedAt / 1000) * 1000).toISOString().replace('.000', '')}`
  return withAge(headers, confirmedAt).with(
    'Warning',
    `299 - "answered from the node's cache: the cloud has not confirmed this ${since}${note}"`,
  )
}
