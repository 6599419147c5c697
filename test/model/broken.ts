import type { Test } from 'tap'
import { runRounds } from './run.ts'

/** Within so many sequences it is found. */
const enough = 150

const seed = 7
const lanes = 2

/**
 * Which finding comes first depends on timing: any finding of a wrong answer counts. A refused
 * request or a failure of the harness does not.
 */
const shownWrong = /shows|shown as|tells|is at|further page|never issued|in step/

/**
 * Runs sequences against hubs of this process until a client receives a wrong answer. `likely`:
 * rounds known to find it, which run first.
 */
export async function isFound(t: Test, likely: readonly number[]): Promise<void> {
  const goes = (count: number): boolean => count < enough
  const { rounds, failed } = await runRounds(seed, goes, lanes, {
    childOnceIn: Infinity,
    first: likely,
    counts: ({ message }) => shownWrong.test(message),
  })
  const found = failed && `round ${failed.round} of seed ${seed}: ${failed.why.message}`
  t.ok(found, found ?? `the hub is broken, and ${rounds} sequences of seed ${seed} found nothing`)
}

/** Puts something in the place of a method of every instance, until disposed. */
export function broken<Part extends object, Name extends keyof Part>(
  part: Part,
  name: Name,
  by: (whole: Part[Name]) => Part[Name],
): Disposable {
  const whole = part[name]
  part[name] = by(whole)
  return { [Symbol.dispose]: () => void (part[name] = whole) }
}
