import { turn } from '../../src/base/clock.ts'

/** As they are before a test puts clocks of its own in their place. */
const { setTimeout: later, clearTimeout: notAnyMore } = globalThis
const measured = performance.now.bind(performance)

/** Longer than anything takes that comes at all, on a machine however busy. */
const patience = 60

export interface Patience {
  readonly seconds?: number
  /** Said when time is up: what was last seen. */
  readonly describe?: () => unknown
}

/**
 * Asks `probe` again and again until it answers something other than `undefined` or `false`. A
 * probe that throws has not answered; the last failure is the cause of the error that ends the
 * wait. The probe looks at each turn of the loop first, then less and less often, and once more
 * when time is up: all of it may have passed in one turn.
 */
export async function until<Answer>(
  what: string,
  probe: () => Promise<Answer | undefined | false> | Answer | undefined | false,
  { seconds = patience, describe }: Patience = {},
): Promise<Answer> {
  const began = measured()
  let cause: unknown
  let late = false
  for (;;) {
    try {
      const answer = await probe()
      if (answer !== undefined && answer !== false) return answer
    } catch (error) {
      if (error instanceof Hopeless) throw error
      cause = error
    }
    if (late) throw waitedFor(what, { seconds, ...(describe && { describe }) }, cause)
    const waited = measured() - began
    late = waited > seconds * 1000
    if (waited < 100) await turn()
    else await new Promise((resolve) => void later(resolve, Math.min(50, waited / 50)))
  }
}

/** Thrown by a probe that will never succeed: the wait ends at once. */
export class Hopeless extends Error {}

/**
 * What is coming, or an error that says what was waited for. Keeps no process alive: where nothing
 * else is under way, the test ends as one that was left unfinished.
 */
export async function inTime<T>(
  what: string,
  coming: Promise<T>,
  { seconds = patience, describe }: Patience = {},
): Promise<T> {
  const late = Promise.withResolvers<never>()
  // Made here, it shows who waits.
  const error = waitedFor(what, { seconds })
  const timer = later(() => {
    if (describe) error.message += seenLast(describe)
    late.reject(error)
  }, seconds * 1000)
  timer.unref()
  try {
    return await Promise.race([coming, late.promise])
  } finally {
    notAnyMore(timer)
  }
}

const waitedFor = (what: string, { seconds, describe }: Patience, cause?: unknown): Error =>
  new Error(`waited ${seconds} s for ${what}${describe ? seenLast(describe) : ''}`, { cause })

const seenLast = (describe: () => unknown): string => `; last seen: ${JSON.stringify(describe())}`
