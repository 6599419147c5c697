import { parseArgs } from 'node:util'
import { seedOf } from '../fuzz/random.ts'
import { run, runRounds, sequenceIn, shrink, report, FailedSequence } from './run.ts'

/**
 * `npm run soak -- [COUNT] [--seed N] [--lanes N] [--round N] [--whole]`: so many random sequences
 * against the model; `--round` repeats one of them. The seed is printed; it is drawn if none is
 * given. What goes wrong is made as short as it gets, unless `--whole` is given, and printed.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string' },
    lanes: { type: 'string', default: '8' },
    round: { type: 'string' },
    whole: { type: 'boolean', default: false },
  },
})

const seed = seedOf(values)
const count = Number(positionals[0] ?? 1000)
const say = (text: string): void => void process.stdout.write(`${text}\n`)
const awake = setInterval(() => undefined, 1_000)

async function failure(): Promise<{ round: number; why: FailedSequence } | undefined> {
  if (values.round === undefined) {
    say(`${count} sequences of seed ${seed}`)
    let said = 0
    const goes = (round: number): boolean => {
      if (round >= said + 100) say(`${(said = round)} sequences`)
      return round < count
    }
    const { rounds, failed } = await runRounds(seed, goes, Number(values.lanes))
    if (!failed) say(`${rounds} sequences of seed ${seed}, and nothing was found`)
    return failed
  }
  const round = Number(values.round)
  try {
    await run(sequenceIn(seed, round))
    say(`round ${round} of seed ${seed}: nothing was found`)
    return undefined
  } catch (why) {
    if (!(why instanceof FailedSequence)) throw why
    return { round, why }
  }
}

const failed = await failure()
if (failed) {
  const { round, why } = failed
  say(`round ${round} of seed ${seed} (npm run soak -- --seed ${seed} --round ${round}):`)
  say(report(values.whole ? why : await shrink(why)))
  process.exitCode = 1
}
clearInterval(awake)
