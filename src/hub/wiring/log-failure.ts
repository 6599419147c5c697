import type { Logger } from 'pino'
import { isProgrammingError } from '../../base/expected-fault.ts'
import type { OnUnexpected } from '../pipeline/failures.ts'

/** Logs unexpected failures of requests. */
export const logUnexpected =
  (log: Logger): OnUnexpected =>
  (err, { method, url }) => {
    log.error({ err, method, path: url.split('?')[0] }, 'a request failed unexpectedly')
  }

/** Logs a transient failure at `level`, but a programming error as an error. */
export function logFailure(
  log: Logger,
  level: 'debug' | 'info',
  fields: { readonly err: unknown; readonly resource?: string },
  message: string,
): void {
  log[isProgrammingError(fields.err) ? 'error' : level](fields, message)
}
