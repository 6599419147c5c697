// npm run bench: measures the hub beside its peers, on one machine in one run. bench/README.md says
// what the rows mean.
import { writeFileSync } from 'node:fs'
import { openWorkspace, type Workspace } from '../test/kit/cluster/workspace.ts'
import { ensureBuilt } from './build.ts'
import { Lifetime } from './lifetime.ts'
import { LoadProcess } from './load/load-process.ts'
import { machine } from './machine.ts'
import { interleave } from './measure/rounds.ts'
import { type RowResult, type Sample, summarize } from './measure/row.ts'
import { tableOf } from './measure/table.ts'
import { type BenchOptions, readOptions } from './options.ts'
import { peers } from './peers/index.ts'
import { filteringHubs } from './peers/filtering.ts'
import { onDisk } from './peers/on-disk.ts'
import type { RunningPeer } from './peers/peer.ts'
import { scenarios } from './scenarios/index.ts'
import type { Scenario, Setting } from './scenarios/scenario.ts'
import { noRealUpstream, realUpstream } from './upstream/control-plane.ts'
import { sandboxUpstream } from './upstream/sandbox.ts'
import { seed } from './upstream/seed.ts'
import type { Upstream } from './upstream/upstream.ts'

const usage = `Usage: npm run bench -- [--only ROW,...] [--runs N] [--seconds N] [--json FILE] [--upstream real|sandbox]
       npm run bench -- cluster [--nodes N] [--pools N] [--qps N]

Rows: ${scenarios.map(({ name }) => name).join(', ')}
      A word before a dash names all that begin with it: get, list, watch, outage, offline.
       npm run bench -- host-network --help: what becomes of pods on a host-network pool
Of each figure the median of the runs, (least-most), and x the ratio to the peer named at the head.
`

const say = (line: string): void => console.log(line)

async function main(): Promise<number> {
  const [first, ...rest] = process.argv.slice(2)
  if (first === 'host-network') {
    const { compareHostNetwork } = await import('./host-network/run.ts')
    return compareHostNetwork(rest, say)
  }
  if (first === 'cluster') return (await import('./cluster/run.ts')).benchCluster(rest, say)
  const options = readOptions(process.argv.slice(2), scenarios)
  if ('mistakes' in options) {
    for (const mistake of options.mistakes) console.error(`bench: ${mistake}`)
    return 2
  }
  if (options.help) {
    say(usage)
    return 0
  }
  await using lifetime = new Lifetime(say)
  try {
    const results = await bench(options, lifetime)
    return results.some(({ peers }) =>
      peers.some(({ failures }) => Object.keys(failures).length > 0),
    )
      ? 1
      : 0
  } catch (error) {
    lifetime.failed = true
    console.error(error)
    return 1
  }
}

async function bench(
  { rows, runs, seconds, json, upstream: wanted }: BenchOptions<Scenario>,
  lifetime: Lifetime,
): Promise<RowResult[]> {
  ensureBuilt()
  const upstream = await startUpstream(wanted, lifetime)
  const workspace = openWorkspace(lifetime)
  const running = await startPeers(upstream, workspace)
  const facts = {
    machine: machine(),
    upstream: upstream.description,
    peers: Object.fromEntries(running.map(({ name, description }) => [name, description])),
    runs,
    seconds,
  }
  say(`${facts.machine}\nupstream: ${facts.upstream}`)
  for (const [name, description] of Object.entries(facts.peers)) say(`${name}: ${description}`)
  say(`${runs} runs of ${seconds} s, interleaved\n`)

  await using load = new LoadProcess()
  await using writer = new LoadProcess()
  const { node: direct, admin } = upstream
  const { outage } = upstream
  const watched = onDisk(upstream, workspace)
  const setting: Setting = {
    load,
    writer,
    direct,
    admin,
    ...(outage && { outage }),
    ...(typeof watched === 'function' && { onDisk: watched }),
    filteringHub: filteringHubs(upstream, workspace),
    seconds,
  }
  const results: RowResult[] = []
  const done = (scenario: Scenario, samples: Samples): void => {
    const series = [...samples].map(([{ name }, each]) => ({ peer: name, samples: each }))
    const result = summarize(scenario, series)
    results.push(result)
    say(tableOf(result))
  }

  for (const scenario of rows.filter(({ needs }) => needs !== 'offline')) {
    if (scenario.needs === 'outage' && outage === undefined) {
      say(`${scenario.name} is left out: this API server would forget everything\n`)
      continue
    }
    const some = running.filter((peer) => scenario.takes?.(peer) ?? true)
    done(scenario, await measureAll(scenario, some, runs, setting))
  }
  await offline(
    rows.filter(({ needs }) => needs === 'offline'),
    running,
    { setting, runs, upstream, done },
  )
  if (json !== undefined) writeFileSync(json, JSON.stringify({ ...facts, rows: results }, null, 2))
  return results
}

type Samples = ReadonlyMap<RunningPeer, readonly Sample[]>

interface Outage {
  readonly setting: Setting
  readonly runs: number
  readonly upstream: Upstream
  readonly done: (scenario: Scenario, samples: Samples) => void
}

/** Measures what needs the API server while it is there, then kills it and measures the others. */
async function offline(
  rows: readonly Scenario[],
  running: readonly RunningPeer[],
  { setting, runs, upstream, done }: Outage,
): Promise<void> {
  if (rows.length === 0) return
  const lost = running.filter((peer) => peer.whenOffline === undefined)
  const left = running.filter((peer) => peer.whenOffline !== undefined)
  const before = new Map<Scenario, Samples>()
  for (const scenario of rows) {
    await primeAll(scenario, left, setting)
    before.set(scenario, await measureAll(scenario, lost, runs, setting))
  }
  await upstream.stop()
  for (const peer of left) await peer.whenOffline?.()
  say('the API server was killed; peers without answers of their own were measured before\n')
  for (const scenario of rows) {
    const after = await interleave(left, runs, (peer) =>
      attempt(() => scenario.measure(peer, setting)),
    )
    done(scenario, new Map([...(before.get(scenario) ?? []), ...after]))
  }
}

/** Primes all peers, then measures them in turn. */
async function measureAll(
  scenario: Scenario,
  some: readonly RunningPeer[],
  runs: number,
  setting: Setting,
): Promise<Samples> {
  await primeAll(scenario, some, setting)
  return interleave(some, runs, (peer) => attempt(() => scenario.measure(peer, setting)))
}

/** What cannot be primed will fail when it is measured, and is shown with that. */
async function primeAll(
  scenario: Scenario,
  some: readonly RunningPeer[],
  setting: Setting,
): Promise<void> {
  for (const peer of some)
    await scenario
      .prime(peer, setting)
      .catch((error: Error) => say(`${scenario.name}, ${peer.name}: ${error.message}`))
}

/** A measurement that fails as a whole is counted as a failure: the other peers and rows go on. */
const attempt = (measure: () => Promise<Sample>): Promise<Sample> =>
  measure().catch((error: Error) => ({
    figures: {},
    failures: { [error.message]: 1 },
    loadShare: 0,
  }))

async function startUpstream(
  wanted: BenchOptions<Scenario>['upstream'],
  lifetime: Lifetime,
): Promise<Upstream> {
  const reason = noRealUpstream()
  if (reason !== undefined && wanted === undefined) say(reason)
  const real = wanted === 'real' || (wanted === undefined && reason === undefined)
  const upstream = await (real ? realUpstream : sandboxUpstream)(lifetime)
  await seed(upstream.admin)
  return upstream
}

async function startPeers(upstream: Upstream, workspace: Workspace): Promise<RunningPeer[]> {
  const running: RunningPeer[] = []
  for (const peer of peers) {
    const reason = peer.missing()
    if (reason === undefined) running.push(await peer.start(upstream, workspace))
    else say(`${peer.name} is left out: ${reason}`)
  }
  return running
}

process.exitCode = await main()
