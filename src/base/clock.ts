import type { EventEmitter } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'

/** Milliseconds since the epoch. */
export const now = (): number => Date.now()

/**
 * The latest of `times` that has come: what lies ahead was told by a clock that was set back since.
 * Where all lie ahead, the latest of them.
 */
export function latest(...times: readonly number[]): number {
  const [only] = times
  if (only !== undefined && times.length === 1) return only
  const present = now()
  const come = times.filter((time) => time <= present)
  return Math.max(...(come.length > 0 ? come : times))
}

/** Milliseconds from a clock that never goes back: for measuring, not for telling the time. */
export const elapsed = (): number => performance.now()

/** Calls `act` once after `ms`; disposing cancels it. Keeps no process alive by itself. */
export function after(ms: number, act: () => void): Disposable {
  const timer = setTimeout(act, ms)
  timer.unref()
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}

/** In how many parts waking time is counted. */
const parts = 4

/**
 * Calls `act` once this process has been awake for `ms`, for whoever judges others by their
 * silence: a time in which it had no turn itself (starved, stopped, the machine asleep) counts as a
 * quarter of `ms` at most. Disposing cancels it. Keeps no process alive by itself.
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

/** Calls `act` every `ms` until disposed. Keeps no process alive by itself. */
export function every(ms: number, act: () => void): Disposable {
  const timer = setInterval(act, ms)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/**
 * Resolves after `ms`, or at once when `signal` aborts (it does not reject: callers look at their
 * signal).
 */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await wait(ms, undefined, { ...(signal && { signal }), ref: false }).catch(() => undefined)
}

/**
 * Resolves after `ms`; unlike `sleep` it keeps the process alive: for a command that has nothing
 * else to wait for.
 */
export const pause = (ms: number): Promise<void> => wait(ms)

/** Resolves when everything that waits for the loop has had its turn. */
export const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/**
 * A number drawn evenly from [low, high): to spread what would otherwise happen everywhere at once.
 */
export const jitter = (low: number, high: number): number => low + Math.random() * (high - low)

/**
 * Keeps the process alive until disposed, as no timer here does by itself: for a command that waits
 * for something far away.
 */
export function keepProcessAlive(): Disposable {
  const timer = setInterval(() => undefined, 60_000)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
