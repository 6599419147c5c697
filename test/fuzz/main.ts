import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { seedOf } from './random.ts'
import { FailedRound, fuzz } from './run.ts'
import { targets } from './targets/index.ts'

/**
 * `npm run fuzz -- [--seconds N] [--seed N] [--target NAME]... [--round N]`: every target in turn
 * for its share of the time, a slice at a time; `--round` repeats one round. The seed is drawn if
 * none is given, and printed. The input of a round that goes wrong is written to fuzz-<target>.bin,
 * to become a file of the corpus.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    target: { type: 'string', multiple: true },
    round: { type: 'string' },
  },
})

const unknown = values.target?.find((each) => !targets.some(({ name }) => name === each))
if (unknown !== undefined) throw new Error(`there is no target ${unknown}`)
const chosen = targets.filter(({ name }) => values.target?.includes(name) ?? true)
const seed = seedOf(values)
const shareMs = (Number(values.seconds) * 1000) / chosen.length
let failed = false
process.stdout.write(`seed ${seed}\n`)

for (const target of chosen) {
  const began = performance.now()
  const only = values.round === undefined ? undefined : Number(values.round)
  const goes = (round: number): boolean =>
    only === undefined ? performance.now() - began < shareMs : round === only
  try {
    const { rounds, taken, growth } = await fuzz(target, seed, goes, only ?? 0)
    const rss = process.memoryUsage.rss()
    const megabytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1)
    process.stdout.write(
      `${target.name}: ${rounds} rounds, ${taken} taken, grew by ${megabytes(growth)} MB, process ${megabytes(rss)} MB\n`,
    )
  } catch (error) {
    if (!(error instanceof FailedRound)) throw error
    failed = true
    process.stdout.write(`${error.message}\n`)
    if (error.cause instanceof Error && error.cause.cause) {
      process.stdout.write(`${String((error.cause.cause as Error).stack)}\n`)
    }
    if (error.input) writeFileSync(`fuzz-${target.name}.bin`, error.input)
  }
}
process.exitCode = failed ? 1 : 0
