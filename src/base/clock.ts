import type { EventEmitter } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { unlessAborted } from './abort.ts'

/** Milliseconds since the epoch. */
export const now = (): number => Date.now()

/**
 * The latest of `times` that is not in the future; a future one was recorded before the clock was
 * set back. If all are in the future, the latest of them.
 */
export function latest(...times: readonly number[]): number {
  const [only] = times
  if (only !== undefined && times.length === 1) return only
  const present = now()
  const come = times.filter((time) => time <= present)
  return Math.max(...(come.length > 0 ? come : times))
}

/** Milliseconds of a monotonic clock, for measuring durations. */
export const elapsed = (): number => performance.now()

/** Calls `act` once after `ms`; disposing cancels it. Does not keep the process alive. */
export const after = (ms: number, act: () => void): Disposable => setTimeout(act, ms).unref()

/** The number of intervals of a wait in waking time. */
const parts = 4

/**
 * Calls `act` once this process has been awake for `ms`, to measure the silence of a peer: time
 * without a turn of the event loop (starved, stopped, the machine asleep) counts as a quarter of
 * `ms` at most. Disposing cancels it. Does not keep the process alive.
 */
export function afterAwake(ms: number, act: () => void): Disposable {
  let left = parts
  const wait = (): Disposable =>
    after(ms / parts, () => {
      left -= 1
      if (left > 0) next = wait()
      else act()
    })
  let next = wait()
  return { [Symbol.dispose]: () => next[Symbol.dispose]() }
}

/** Calls `act` once after `ms`, unless `stream` closes before. */
export function afterUnlessClosed(stream: EventEmitter, ms: number, act: () => void): void {
  const waiting = after(ms, act)
  stream.once('close', () => waiting[Symbol.dispose]())
}

/** Calls `act` every `ms` until disposed. Does not keep the process alive. */
export function every(ms: number, act: () => void): Disposable {
  const timer = setInterval(act, ms)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/** Resolves after `ms`, or when `signal` aborts. It does not reject: callers check their signal. */
export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  timed(ms, signal, { ref: false })

/** Resolves with `promise`, or with `undefined` after `ms`. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const settled = new AbortController()
  try {
    return await Promise.race([promise, sleep(ms, settled.signal).then(() => undefined)])
  } finally {
    settled.abort()
  }
}

/** As `sleep`, but it keeps the process alive: for a command that waits for nothing else. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  timed(ms, signal, { ref: true })

const timed = (
  ms: number,
  signal: AbortSignal | undefined,
  { ref }: { readonly ref: boolean },
): Promise<void> => wait(ms, undefined, { ...(signal && { signal }), ref }).catch(() => undefined)

/**
 * The first result of `attempt` but `undefined`; `undefined` after so long, or when `signal`
 * aborts. Keeps the process alive.
 */
export async function soon<T>(
  ms: number,
  attempt: () => Promise<T | undefined>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  for (const begun = elapsed(); ;) {
    const result = await unlessAborted(attempt(), signal)
    if (result !== undefined || signal?.aborted || elapsed() - begun >= ms) return result
    await pause(betweenMs, signal)
  }
}

const betweenMs = 500

/** Resolves in the next turn of the event loop, after everything that is due now. */
export const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** A random number from [low, high), to spread actions that many hubs would do at the same time. */
export const jitter = (low: number, high: number): number => low + Math.random() * (high - low)

/**
 * Keeps the process alive until disposed, which no timer here does: for a command that waits for a
 * remote event.
 */
export function keepProcessAlive(): Disposable {
  const timer = setInterval(() => undefined, 60_000)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
