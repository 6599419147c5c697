// npm run bench: measures the hub beside its peers, on one machine in one run. bench/README.md says
// what the rows mean.
import { Lifetime } from './lifetime.ts'
import { type BenchOptions, readOptions } from './options.ts'
import { hasFailed } from './measure/row.ts'
import { compare, linesOf } from './report/baseline.ts'
import { pairedLines } from './report/paired.ts'
import { summaryRows } from './report/summary.ts'
import { readResults, type Results } from './report/results.ts'
import { writeResults } from './report/write.ts'
import { scenarios } from './scenarios/index.ts'
import type { Scenario } from './scenarios/scenario.ts'
import { bench } from './whole-run.ts'

const usage = `Usage: npm run bench -- [OPTION...]
  --only ROW,...       some rows; a word before a dash names all that begin with it: get, list, watch;
                       summary: those that the summary shows
  --peers NAME,...     some peers
  --runs N             rounds of each row (5; 7 with --against)
  --seconds N          of one measurement (5)
  --upstream real|sandbox  kube-apiserver and etcd (where they are found), or the one in memory
  --yurthub FILE       OpenYurt's program, for the peer of that name
  --out DIR            where results.json, results.md and results.svg go (bench/, for a run of all rows)
  --baseline FILE      results.json of an earlier run: what moved beyond noise
  --against DIR        another checkout, built if need be: its hub and this one's in turn
  --hub FILE           the entry of the hub, in place of the build's

       npm run bench -- churn [--minutes N]
       npm run bench -- cluster [--nodes N] [--pools N]
       npm run bench -- planted: four faults in the hub, each of which --baseline has to find
       npm run bench -- host-network --help: what becomes of pods on a host-network pool

Rows: ${scenarios.map(({ name }) => name).join(', ')}
Exit code 1: something failed, or moved for the worse; 2: a mistake in the options.
`

const say = (line: string): void => console.log(line)

async function main(): Promise<number> {
  const [first, ...rest] = process.argv.slice(2)
  if (first === 'host-network') {
    const { compareHostNetwork } = await import('./host-network/run.ts')
    return compareHostNetwork(rest, say)
  }
  if (first === 'planted') return (await import('./planted/run.ts')).findPlanted(say)
  if (first === 'churn') return (await import('./churn.ts')).benchChurn(rest, say)
  if (first === 'cluster') return (await import('./cluster/run.ts')).benchCluster(rest, say)
  const options = readOptions(process.argv.slice(2), scenarios, {
    folder: import.meta.dirname,
    summary: summaryRows,
  })
  if ('mistakes' in options) {
    for (const mistake of options.mistakes) console.error(`bench: ${mistake}`)
    return 2
  }
  if (options.help) {
    say(usage)
    return 0
  }
  let baseline: Results | undefined
  try {
    // Before anything is measured: a wrong file would be noticed too late.
    baseline = options.baseline === undefined ? undefined : readResults(options.baseline)
  } catch (error) {
    console.error(`bench: ${(error as Error).message}`)
    return 2
  }
  await using lifetime = new Lifetime(say)
  try {
    const results = await bench(options, { lifetime, say })
    return report(options, results, baseline) ? 0 : 1
  } catch (error) {
    lifetime.failed = true
    console.error(error)
    return 1
  }
}

/** Says what moved, writes the results, and returns whether all is well. */
function report(
  { out, against }: BenchOptions<Scenario>,
  results: Results,
  baseline: Results | undefined,
): boolean {
  const comparison = baseline && compare(baseline, results)
  const moved = comparison
    ? [`With the run of ${baseline?.commit} on ${baseline?.date} UTC:`, ...linesOf(comparison)]
    : []
  if (against !== undefined) moved.push(...pairedLines(results.rows))
  for (const line of moved) say(line)
  if (out !== undefined) {
    writeResults(out, results, { command: commandLine(), moved })
    say(`written: results.json, results.md and results.svg in ${out}`)
  }
  return !results.rows.some(hasFailed) && !comparison?.moves.some(({ word }) => word === 'worse')
}

/**
 * To repeat the run with, not with what it was compared with; files elsewhere on this machine by
 * their last name alone.
 */
const commandLine = (): string => {
  const given = process.argv.slice(2)
  const compared = given.indexOf('--baseline')
  if (compared >= 0) given.splice(compared, 2)
  const args = given
    .filter((each) => !each.startsWith('--baseline='))
    .map((each) => each.replace(/(?<=^|=)\/\S*\//, ''))
  return ['npm run bench', ...(args.length > 0 ? ['--', ...args] : [])].join(' ')
}

process.exitCode = await main()
