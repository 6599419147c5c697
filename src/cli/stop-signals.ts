/** A person, or the supervisor of the process, ends it. */
export class Interrupted extends Error {
  readonly code = 'INTERRUPTED'
}

interface StopSignals extends Disposable {
  /** Aborts with `Interrupted`. */
  readonly signal: AbortSignal
}

/**
 * Heeds SIGTERM and SIGINT until disposed, so that the process ends between two steps; the first
 * process of a container would not end at them at all. Those after the first change nothing.
 */
export function stopSignals(): StopSignals {
  const stop = new AbortController()
  const onSignal = (name: string): void => stop.abort(new Interrupted(`ended by ${name}`))
  const names = ['SIGTERM', 'SIGINT'] as const
  for (const name of names) process.on(name, onSignal)
  return {
    signal: stop.signal,
    [Symbol.dispose]() {
      for (const name of names) process.off(name, onSignal)
    },
  }
}
