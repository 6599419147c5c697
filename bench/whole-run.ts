import { resolve } from 'node:path'
import { openWorkspace, type Workspace } from '../test/kit/cluster/workspace.ts'
import { checkout, ensureBuilt } from './build.ts'
import type { Lifetime } from './lifetime.ts'
import { LoadProcess } from './load/load-process.ts'
import { busyCores, commitOf, machine } from './machine.ts'
import { interleave } from './measure/rounds.ts'
import { hasFailed, type RowResult, type Sample, summarize } from './measure/row.ts'
import type { BenchOptions } from './options.ts'
import { peersOf } from './peers/index.ts'
import { OwnHubs } from './peers/own-hubs.ts'
import type { PeerName, RunningPeer } from './peers/peer.ts'
import type { Results } from './report/results.ts'
import { tableOf } from './report/table.ts'
import type { Scenario, Setting } from './scenarios/scenario.ts'
import { noRealUpstream, realUpstream } from './upstream/control-plane.ts'
import { sandboxUpstream } from './upstream/sandbox.ts'
import { podPaths, seed } from './upstream/seed.ts'
import type { Upstream } from './upstream/upstream.ts'

/** What measuring rows needs of a run. */
export interface RowsRun {
  readonly upstream: Pick<Upstream, 'stop'>
  readonly runs: number
  readonly say: (line: string) => void
  /** Notes that a peer or a row is left out, and why. */
  readonly leaveOut: (name: string, why: string) => void
}

interface Run extends RowsRun {
  readonly upstream: Upstream
  readonly workspace: Workspace
}

/** Measures the rows of the options; what it starts ends before it resolves. */
export async function bench(
  options: BenchOptions<Scenario>,
  { lifetime, say }: { readonly lifetime: Lifetime; readonly say: (line: string) => void },
): Promise<Results> {
  const { runs, seconds } = options
  const programs = {
    hub: options.hub === undefined ? ensureBuilt() : resolve(options.hub),
    against: options.against && ensureBuilt(resolve(options.against)),
    yurthub: options.yurthub && resolve(options.yurthub),
  }
  const began = performance.now()
  const before = await busyCores()
  const missing: Results['missing'][number][] = []
  const leaveOut = (name: string, why: string): void => {
    missing.push({ name, why })
    say(`${name} is left out: ${why}`)
  }
  const upstream = await startUpstream(options.upstream, lifetime, say)
  const run: Run = { upstream, workspace: openWorkspace(lifetime), runs, say, leaveOut }
  const running = await startPeers(programs, options.peers, run)
  say(`${machine()}\nupstream: ${upstream.description}`)
  for (const { name, description } of running) say(`${name}: ${description}`)
  say(`${runs} rounds of ${seconds} s, interleaved; others take ${before.toFixed(2)} cores\n`)

  const rows = await measured(options, running, run)
  // So that the logs of what failed are kept.
  lifetime.failed = rows.some(hasFailed)
  await lifetime[Symbol.asyncDispose]()
  return {
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
    commit: commitOf(checkout),
    machine: machine(),
    upstream: upstream.description,
    otherWork: [before, await busyCores()],
    runs,
    seconds,
    minutes: (performance.now() - began) / 60_000,
    peers: running.map(({ name, description }) => ({ name, description })),
    missing,
    rows,
  }
}

async function measured(
  { rows, seconds }: BenchOptions<Scenario>,
  running: readonly RunningPeer[],
  run: Run,
): Promise<RowResult[]> {
  const { node: direct, admin, outage } = run.upstream
  const hubs = new OwnHubs(run.upstream, run.workspace)
  await using load = new LoadProcess()
  await using writer = new LoadProcess()
  const setting: Setting = {
    load,
    writer,
    direct,
    admin,
    ...(outage && { outage }),
    hubs,
    pods: podPaths(),
    warmLists: 20,
    seconds,
  }
  return await measureRows(rows, running, setting, run)
}

/** Measures rows of these peers, in their order; those of an outage last. */
export async function measureRows(
  rows: readonly Scenario[],
  running: readonly RunningPeer[],
  setting: Setting,
  run: RowsRun,
): Promise<RowResult[]> {
  const { say, leaveOut } = run
  const results: RowResult[] = []
  const done = (scenario: Scenario, samples: Samples): void => {
    const series = [...samples].map(([{ name }, each]) => ({ peer: name, samples: each }))
    const result = summarize(scenario, series)
    results.push(result)
    say(tableOf(result))
  }
  for (const scenario of rows.filter(({ needs }) => needs !== 'offline')) {
    if (scenario.needs === 'outage' && setting.outage === undefined)
      leaveOut(scenario.name, 'this API server would forget everything')
    else done(scenario, await measureAll(scenario, takenBy(scenario, running), setting, run))
  }
  const ofOffline = rows.filter(({ needs }) => needs === 'offline')
  for (const [scenario, samples] of await offline(ofOffline, running, setting, run))
    done(scenario, samples)
  return results
}

type Samples = ReadonlyMap<RunningPeer, readonly Sample[]>

/** Measures what needs the API server while it is there, then kills it and measures the others. */
async function offline(
  rows: readonly Scenario[],
  running: readonly RunningPeer[],
  setting: Setting,
  run: RowsRun,
): Promise<Map<Scenario, Samples>> {
  const samples = new Map<Scenario, Samples>()
  if (rows.length === 0) return samples
  const lost = running.filter((peer) => peer.whenOffline === undefined)
  const left = running.filter((peer) => peer.whenOffline !== undefined)
  for (const scenario of rows) {
    await primeAll(scenario, takenBy(scenario, left), setting, run)
    samples.set(scenario, await measureAll(scenario, takenBy(scenario, lost), setting, run))
  }
  await run.upstream.stop()
  for (const peer of left) await peer.whenOffline?.()
  run.say('the API server was killed; peers without answers of their own were measured before\n')
  for (const scenario of rows) {
    const after = await interleave(takenBy(scenario, left), run.runs, (peer) =>
      attempt(() => scenario.measure(peer, setting)),
    )
    samples.set(scenario, new Map([...(samples.get(scenario) ?? []), ...after]))
  }
  return samples
}

const takenBy = (scenario: Scenario, some: readonly RunningPeer[]): readonly RunningPeer[] =>
  some.filter((peer) => scenario.takes?.(peer) ?? true)

/** Primes all peers, then measures them in turn. */
async function measureAll(
  scenario: Scenario,
  some: readonly RunningPeer[],
  setting: Setting,
  run: RowsRun,
): Promise<Samples> {
  await primeAll(scenario, some, setting, run)
  return interleave(some, run.runs, (peer) => attempt(() => scenario.measure(peer, setting)))
}

/** What cannot be primed will fail when it is measured, and is shown with that. */
async function primeAll(
  scenario: Scenario,
  some: readonly RunningPeer[],
  setting: Setting,
  { say }: RowsRun,
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
  say: RowsRun['say'],
): Promise<Upstream> {
  const reason = noRealUpstream()
  if (reason !== undefined && wanted === undefined) say(reason)
  const real = wanted === 'real' || (wanted === undefined && reason === undefined)
  const upstream = await (real ? realUpstream : sandboxUpstream)(lifetime)
  await seed(upstream.admin)
  return upstream
}

async function startPeers(
  programs: Parameters<typeof peersOf>[0],
  wanted: readonly PeerName[] | undefined,
  { upstream, workspace, leaveOut }: Run,
): Promise<RunningPeer[]> {
  const running: RunningPeer[] = []
  for (const peer of peersOf(programs)) {
    if (wanted && !wanted.includes(peer.name)) continue
    const reason = peer.missing()
    if (reason !== undefined) {
      leaveOut(peer.name, reason)
      continue
    }
    try {
      running.push(await peer.start(upstream, workspace))
    } catch (error) {
      // Another's fault is no reason to measure nothing.
      if (peer.name === 'direct' || peer.name === 'hub') throw error
      leaveOut(peer.name, `${(error as Error).message.split('\n')[0]}`)
    }
  }
  return running
}
