import { now } from '../../base/clock.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { HeaderList } from '../../http/exchange/headers.ts'

/**
 * Programs that show a person the warnings they get. All others would write them to their log, once
 * a request.
 */
const shownToPeople = new Set(['kubectl', 'oc', 'k9s', 'helm'])

/**
 * How old what the cache answers is: `Age`, in seconds since the cloud last said it (RFC 9111
 * section 5.1). `confirmedAt` is in milliseconds since the epoch; 0, for not known, says nothing.
 */
export function withAge(headers: HeaderList, confirmedAt: number): HeaderList {
  if (confirmedAt === 0) return headers
  const seconds = Math.floor((now() - confirmedAt) / 1000)
  return headers.with('Age', String(Math.max(seconds, 0)))
}

/**
 * The same, and for people a `Warning`, which kubectl prints. It names the time and not the age, so
 * that kubectl prints it once for all requests of one command that are as old.
 */
export function withStaleness(
  headers: HeaderList,
  { component }: Exchange,
  confirmedAt: number,
): HeaderList {
  const aged = withAge(headers, confirmedAt)
  if (confirmedAt === 0 || !shownToPeople.has(component)) return aged
  const since = new Date(Math.floor(confirmedAt / 1000) * 1000).toISOString().replace('.000', '')
  return aged.with(
    'Warning',
    `299 - "answered from the node's cache: the cloud has not confirmed this since ${since}"`,
  )
}
