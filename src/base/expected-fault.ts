/**
 * SQLite's result codes for faults of disk, memory or configuration, as opposed to mistakes in the
 * program.
 */
const ofTheWorldInSqlite = new Set([5, 7, 8, 10, 11, 13, 14, 26])

/**
 * Whether `error` and all its causes are faults that the hub expects: its own errors, which have a
 * code, and those of the system, TLS or SQLite. Their message is sufficient. Any other error is a
 * mistake in the program and is logged with its stack.
 */
export function isExpectedFault(error: unknown): boolean {
  if (error === undefined || error === null) return true
  if (error instanceof Error) return isForeseen(error) && isExpectedFault(error.cause)
  // The error of another thread.
  const { errcode } = error as { readonly errcode?: unknown }
  return errcode === undefined || isOfTheWorld(errcode)
}

const isOfTheWorld = (errcode: unknown): boolean => ofTheWorldInSqlite.has(Number(errcode) & 0xff)

function isForeseen(error: Error): boolean {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return error.errors.every(isExpectedFault)
  }
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown }
  if (typeof code !== 'string') return false
  if (code === 'ERR_SQLITE_ERROR') return isOfTheWorld(errcode)
  // Node's own codes are for wrong arguments and states, except those of protocols.
  return (
    !code.startsWith('ERR_') || /^ERR_(?:SSL|TLS|OSSL|HTTP2|SOCKET|STREAM_PREMATURE)/.test(code)
  )
}

const mistakes = [TypeError, RangeError, ReferenceError, SyntaxError] as const

/**
 * Whether it can only be a mistake in a program: an error of the language itself, or a failed
 * assertion.
 */
export const isProgrammingError = (error: unknown): boolean =>
  mistakes.some((kind) => error instanceof kind) ||
  (error as { readonly code?: unknown } | undefined)?.code === 'ERR_ASSERTION'
