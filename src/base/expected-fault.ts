/**
 * Whether `error` and all its causes are faults that the hub expects: its own errors, which have a
 * code, and those of the system or TLS. Their message is sufficient. Any other error is a mistake
 * in the program and is logged with its stack.
 */
export const isExpectedFault = (error: unknown): boolean =>
  error === undefined ||
  error === null ||
  (error instanceof Error && isForeseen(error) && isExpectedFault(error.cause))

function isForeseen(error: Error): boolean {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return error.errors.every(isExpectedFault)
  }
  const { code } = error as { readonly code?: unknown }
  if (typeof code !== 'string') return false
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
