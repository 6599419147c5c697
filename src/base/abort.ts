/**
 * Aborts `child` when `parent` aborts, until disposed. `AbortSignal.any` would leave a record on a parent that lives on
 * (nodejs/node#54614); this leaves nothing once let go of.
 */
export function follow(parent: AbortSignal, child: AbortController): Disposable {
  const abort = (): void => child.abort(parent.reason)
  if (parent.aborted) abort()
  else parent.addEventListener('abort', abort, { once: true })
  return { [Symbol.dispose]: () => parent.removeEventListener('abort', abort) }
}

/** Calls `act` when `signal` aborts (at once if it has), until disposed. */
export function onAbort(signal: AbortSignal, act: () => void): Disposable {
  if (signal.aborted) act()
  else signal.addEventListener('abort', act, { once: true })
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', act) }
}
