// npm run bench -- planted: whether --baseline finds four faults that are put into the hub. For
// each, the row that has to show it is measured with the hub as it is and with the fault in it,
// from its sources.
import { join } from 'node:path'
import { checkout } from '../build.ts'
import { Lifetime } from '../lifetime.ts'
import { compare, linesOf } from '../report/baseline.ts'
import type { Results } from '../report/results.ts'
import { scenarios } from '../scenarios/index.ts'
import { bench } from '../whole-run.ts'

/**
 * Each fault, and the figure that has to get worse. Of a doubled write it is the number of writes:
 * the bytes of a round move by a third, as it meets a compaction or none.
 */
const faults = [
  { file: 'busy-loop', what: '2 ms of work a request', row: 'get-recorded', key: 'cpu' },
  { file: 'garbage', what: '20 KB of garbage a request', row: 'allocated', key: 'passed' },
  { file: 'leak', what: '1 KB left behind a request', row: 'kept', key: 'recorded' },
  { file: 'doubled-write', what: 'each commit written twice', row: 'disk', key: 'writes' },
] as const

/** Returns the exit code: 1 unless each is found. */
export async function findPlanted(say: (line: string) => void): Promise<number> {
  let missed = 0
  for (const { file, what, row, key } of faults) {
    say(`== planted: ${what}`)
    const plain = await runOf(row, join(checkout, 'src', 'main.ts'), say)
    const planted = await runOf(row, join(import.meta.dirname, `${file}.ts`), say)
    const comparison = compare(plain, planted)
    for (const line of linesOf(comparison)) say(line)
    const isFound = comparison.moves.some(
      (move) => move.row === row && move.metric.key === key && move.word === 'worse',
    )
    if (!isFound) missed += 1
    say(`${isFound ? 'found' : 'NOT FOUND'}: ${what}\n`)
  }
  say(`${faults.length - missed} of ${faults.length} faults found`)
  return missed === 0 ? 0 : 1
}

async function runOf(row: string, hub: string, say: (line: string) => void): Promise<Results> {
  await using lifetime = new Lifetime(say)
  return await bench(
    {
      rows: scenarios.filter(({ name }) => name === row),
      runs: 3,
      seconds: 2,
      upstream: 'sandbox',
      peers: ['direct', 'hub'],
      out: undefined,
      baseline: undefined,
      against: undefined,
      hub,
      yurthub: undefined,
      help: false,
    },
    { lifetime, say },
  )
}
