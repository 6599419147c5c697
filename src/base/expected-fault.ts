/**
 * What a disk, a network or an operator brings about, as far as a code of the system or of SQLite
 * tells: no mistake of the program.
 */
const ofTheWorldInSqlite = new Set([5, 7, 8, 10, 11, 13, 14, 26])

/**
 * Whether `error` and all its causes are faults that the hub foresees: its own errors, which have a
 * code, and what the system, TLS or SQLite says. Their message is all there is to tell. Anything
 * else is a mistake in a program, of which the stack is wanted.
 */
export function isExpectedFault(error: unknown): boolean {
  if (error === undefined || error === null) return true
  if (error instanceof Error) return isForeseen(error) && isExpectedFault(error.cause)
  // What another thread says of its failure.
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
  // Node's own codes tell of wrong arguments and states, but for those of protocols.
  return (
    !code.startsWith('ERR_') || /^ERR_(?:SSL|TLS|OSSL|HTTP2|SOCKET|STREAM_PREMATURE)/.test(code)
  )
}

const mistakes = [TypeError, RangeError, ReferenceError, SyntaxError] as const

/**
 * Whether it can only be a mistake in a program: what the language itself throws, and failed
 * assertions.
 */
export const isProgrammingError = (error: unknown): boolean =>
  mistakes.some((kind) => error instanceof kind) ||
  (error as { readonly code?: unknown } | undefined)?.code === 'ERR_ASSERTION'
