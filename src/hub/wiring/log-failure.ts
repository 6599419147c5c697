import type { Logger } from 'pino'
import { isProgrammingError } from '../../base/expected-fault.ts'
import type { OnUnexpected } from '../pipeline/failures.ts'

/** Where failures of requests are logged that the hub does not foresee. */
export const logUnexpected =
  (log: Logger): OnUnexpected =>
  (err, { method, url }) => {
    log.error({ err, method, path: url.split('?')[0] }, 'a request failed unexpectedly')
  }

/**
 * Logs a failure that is repeated or goes by at `level`, but a mistake in a program as an error,
 * whatever it interrupted.
 */
export function logFailure(
  log: Logger,
  level: 'debug' | 'info',
  fields: { readonly err: unknown; readonly resource?: string },
  message: string,
): void {
  log[isProgrammingError(fields.err) ? 'error' : level](fields, message)
}
