// npm run outages -- ROUNDS: two real API servers, one of which is always in trouble, for as long
// as one likes; then a kubelet and informers behind two that fail in turn or both at once.
// README.md says more.
import { sufferMisfortunes } from '../test/control-plane/two-servers.ts'
import { endureOutages } from '../test/control-plane/outages.ts'
import { noControlPlane } from '../test/kit/control-plane.ts'
import { noKubelet } from '../test/kit/kubelet.ts'
import { Lifetime } from './lifetime.ts'
import { percentile } from './measure/statistics.ts'

const say = (line: string): void => console.log(line)

async function main(): Promise<number> {
  const rounds = Number(process.argv[2] ?? 100)
  const reason = noControlPlane()
  if (!Number.isSafeInteger(rounds) || rounds < 1 || reason !== undefined) {
    console.error(`outages: ${reason ?? 'say how many rounds'}`)
    return 2
  }
  const isWell = [await underLoad(rounds), await watched(rounds)]
  return isWell.every(Boolean) ? 0 : 1
}

/** Whether reads, writes and a watch fare as they must. */
async function underLoad(rounds: number): Promise<boolean> {
  await using lifetime = new Lifetime(say)
  const suffered = await sufferMisfortunes(lifetime, rounds)
  const { readErrors, writeErrors, lost, anomalies, unseen } = suffered
  for (const line of [...readErrors, ...anomalies, ...lost, ...unseen]) say(`! ${line}`)
  for (const [what, each] of Map.groupBy(writeErrors, (error) => error.slice(0, 160)))
    say(`${each.length} writes: ${what}`)
  say(`${rounds} outages, ${suffered.answers} answers, ${suffered.kubectlRuns} runs of kubectl`)
  say(`errors on reads: ${readErrors.length}; writes not acknowledged: ${writeErrors.length}`)
  say(`acknowledged and lost: ${lost.length}; time going backwards: ${anomalies.length}`)
  say(`first answer after ${figures(suffered.nextMs)}`)
  say(`slowest answer meanwhile ${figures(suffered.slowestMs)}`)
  lifetime.failed = [readErrors, lost, anomalies, unseen].some(({ length }) => length > 0)
  return !lifetime.failed
}

/** Whether no client lists, and none begins a watch but after one that has lasted its time. */
async function watched(rounds: number): Promise<boolean> {
  const reason = noKubelet()
  if (reason !== undefined) {
    say(`not run with a kubelet and informers: ${reason}`)
    return true
  }
  await using lifetime = new Lifetime(say)
  const endured = await endureOutages(lifetime, rounds, { slowly: true })
  if ('missing' in endured) {
    say(`not run with a kubelet and informers: ${endured.missing}`)
    return true
  }
  const { begun, differences, events } = endured
  for (const line of [...begun, ...differences]) say(`! ${line}`)
  say(`${rounds} outages, ${events} events for each informer`)
  say(`lists and early watches of kubelet and informers: ${begun.length}`)
  say(`events out of order, missing or told twice: ${differences.length}`)
  lifetime.failed = begun.length > 0 || differences.length > 0
  return !lifetime.failed
}

const figures = (values: readonly number[]): string =>
  [0.5, 0.99, 1]
    .map((share) => `${percentile(values, share).toFixed(0)} ms (${share * 100} %)`)
    .join(', ')

process.exitCode = await main()
