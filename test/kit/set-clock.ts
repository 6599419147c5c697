import { mock } from 'node:test'
import type { Teardown } from './wire/wire.ts'

interface Repeated {
  readonly act: () => void
  readonly everyMs: number
  at: number
  unref(): void
}

/**
 * A clock for what is done every so often, and for what is measured: it stands still until it is
 * set forward. Timers that fire once, and the time of day, stay as they are.
 */
export function setClock(t: Teardown): { readonly forward: (ms: number) => void } {
  let time = Math.ceil(performance.now())
  const all = new Set<Repeated>()
  const begin = (act: () => void, everyMs: number): Repeated => {
    const repeated = { act, everyMs, at: time + everyMs, unref: () => undefined }
    all.add(repeated)
    return repeated
  }
  const mocked = [
    mock.method(performance, 'now', () => time),
    mock.method(globalThis, 'setInterval', begin as unknown as typeof setInterval),
    mock.method(
      globalThis,
      'clearInterval',
      (repeated: unknown) => void all.delete(repeated as Repeated),
    ),
  ]
  t.teardown(() => mocked.forEach((each) => each.mock.restore()))
  const next = (by: number): Repeated | undefined =>
    [...all].filter(({ at }) => at <= by).toSorted((one, other) => one.at - other.at)[0]
  return {
    forward: (ms) => {
      const by = time + ms
      for (let due = next(by); due; due = next(by)) {
        time = due.at
        due.at += due.everyMs
        due.act()
      }
      time = by
    },
  }
}
