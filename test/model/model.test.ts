import t from 'tap'
import { elapsed } from '../../src/base/clock.ts'
import { runRounds, told } from './run.ts'

/** How many at a time: most of their time is waiting. */
const lanes = 8

/** So many, or fewer where the machine is busy: what there is time for. */
const most = 150
const budgetMs = 60_000

void t.test('no client is shown what it must not be, whatever goes wrong', async (t) => {
  const began = elapsed()
  const goes = (round: number): boolean => round < most && elapsed() - began < budgetMs
  const { rounds, failed } = await runRounds(1, goes, lanes, { childOnceIn: 40 })
  t.comment(`${rounds} sequences`)
  if (failed) t.fail(`round ${failed.round} of seed 1: ${told(failed.why)}`)
  else t.pass('nothing was found')
})
