import t from 'tap'
import { runRounds, report } from './run.ts'

/** How many at a time: most of their time is waiting. */
const lanes = 4

/**
 * As many on every machine, so that what is found on one is found on all; `npm run soak` has no
 * end.
 */
const sequences = 12

void t.test('through any faults no client gets a wrong answer', async (t) => {
  const goes = (round: number): boolean => round < sequences
  const { rounds, failed } = await runRounds(1, goes, lanes)
  t.equal(rounds, sequences)
  if (failed) t.fail(`round ${failed.round} of seed 1: ${report(failed.why)}`)
  else t.pass('nothing was found')
})
