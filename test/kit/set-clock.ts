import { mock } from 'node:test'
import type { Teardown } from './wire/wire.ts'

interface Timer extends Disposable {
  readonly act: () => void
  /** Absent: it fires once. */
  readonly everyMs?: number
  at: number
  unref(): Timer
}

/**
 * A clock for what is done every so often, and for what is measured: it stands still until it is
 * set forward. `once`: so it is for timers that fire once; else these stay as they are, as the time
 * of day and Node's own timers do.
 */
export function setClock(
  t: Teardown,
  { once = false } = {},
): { readonly forward: (ms: number) => void } {
  let time = Math.ceil(performance.now())
  const all = new Set<Timer>()
  const end = (timer: unknown): void => void all.delete(timer as Timer)
  const begin = (act: () => void, ms: number, again: Pick<Timer, 'everyMs'>): Timer => {
    const timer: Timer = {
      act,
      ...again,
      at: time + ms,
      unref: () => timer,
      [Symbol.dispose]: () => end(timer),
    }
    all.add(timer)
    return timer
  }
  const repeat = (act: () => void, ms: number): Timer => begin(act, ms, { everyMs: ms })
  const delay = (act: () => void, ms: number): Timer => begin(act, ms, {})
  const mocked = [
    mock.method(performance, 'now', () => time),
    mock.method(globalThis, 'setInterval', repeat as unknown as typeof setInterval),
    mock.method(globalThis, 'clearInterval', end),
    ...(once
      ? [
          mock.method(globalThis, 'setTimeout', delay as unknown as typeof setTimeout),
          mock.method(globalThis, 'clearTimeout', end),
        ]
      : []),
  ]
  t.teardown(() => mocked.forEach((each) => each.mock.restore()))
  const next = (by: number): Timer | undefined =>
    [...all].filter(({ at }) => at <= by).toSorted((one, other) => one.at - other.at)[0]
  return {
    forward: (ms) => {
      const by = time + ms
      for (let due = next(by); due; due = next(by)) {
        time = due.at
        if (due.everyMs === undefined) all.delete(due)
        else due.at += due.everyMs
        due.act()
      }
      time = by
    },
  }
}
