import { createServer, type RequestListener } from 'node:http'
import { mkdirSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { LoadProcess } from '../../bench/load/load-process.ts'
import { startHub } from '../../bench/peers/hub.ts'
import { type HubsOfRows, OwnHubs } from '../../bench/peers/own-hubs.ts'
import type { RunningPeer } from '../../bench/peers/peer.ts'
import { getRecorded } from '../../bench/scenarios/get.ts'
import { filtersFor } from '../../bench/scenarios/growth.ts'
import { rowsOf } from '../../bench/scenarios/index.ts'
import { listProtobuf } from '../../bench/scenarios/list.ts'
import type { Setting } from '../../bench/scenarios/scenario.ts'
import type { Sizes } from '../../bench/scenarios/sizes.ts'
import { filteringNode } from '../../bench/upstream/filtered.ts'
import { sandboxUpstream } from '../../bench/upstream/sandbox.ts'
import { podPaths, seed } from '../../bench/upstream/seed.ts'
import type { Upstream } from '../../bench/upstream/upstream.ts'
import { measureRows } from '../../bench/whole-run.ts'
import { FaultyDisk, disk } from '../crash/disk.ts'
import { openWorkspace, type Workspace } from '../kit/cluster/workspace.ts'
import { freePort } from '../kit/free-port.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { link } from '../kit/wire/link.ts'
import { portOf } from '../kit/wire/listening.ts'

/** Whether a row measures at all shows in any time. */
const seconds = 0.05
const podCount = 20
const pods = podPaths(podCount)

/** As little as shows that a row runs. */
const sizes: Sizes = {
  bigList: 4,
  crowd: 20,
  fanOut: [{ watchers: 5, perSecond: 50 }],
  filtered: [20],
  many: 30,
  growth: { objects: [10, 30], bytes: [1000, 50_000], watchers: [1, 5], filters: [1, 2] },
}

/** Of all tests here: as they run one after the other, each job is the only one. */
const loads: Pick<Setting, 'load' | 'writer'> = {
  load: new LoadProcess(),
  writer: new LoadProcess(),
}
t.teardown(async () => {
  await loads.load[Symbol.asyncDispose]()
  await loads.writer[Symbol.asyncDispose]()
})

/** A server that answers as `listener` does. */
async function serving(t: Test, listener: RequestListener): Promise<RunningPeer> {
  const url = `http://127.0.0.1:${await portOf(t, createServer(listener))}`
  return { name: 'nginx', description: 'in the test', target: { url } }
}

void t.test('each row runs, and gives its figures of a hub', async (t) => {
  const upstream = await sandboxUpstream(t)
  await seed(upstream.admin, podCount)
  const workspace = openWorkspace(t)
  // Where the API server in memory stops answering or is gone, it is the way to it that is closed.
  const way = await link(t, Number(new URL(upstream.node.url).port))
  const [close, open] = [async () => way.down(), async () => way.up()]
  const node = { ...upstream.node, url: `https://127.0.0.1:${way.port}` }
  const behind = { ...upstream, node }
  const hub = await startHub(behind, workspace, {
    peer: 'hub',
    name: 'hub',
    module: nodehubProgram,
  })
  const { hubs, hasDisk } = await oneForAll(behind, workspace)
  const setting: Setting = {
    ...loads,
    direct: upstream.node,
    admin: upstream.admin,
    outage: { freeze: close, thaw: open, kill: close, start: open },
    hubs,
    pods,
    warmLists: 1,
    seconds,
  }
  // Starts and outages differ by what becomes of the API server alone, and take seconds.
  const left = [
    'start-gone',
    'start-healthy',
    'outage-frozen',
    ...(hasDisk ? [] : ['disk', 'slow-disk']),
  ]
  const rows = rowsOf(sizes).filter(({ name }) => !left.includes(name))
  const results = await measureRows(rows, [hub], setting, {
    upstream: { stop: close },
    runs: 1,
    say: (line) => t.comment(line),
    leaveOut: (name, why) => t.fail(`${name} is left out: ${why}`),
  })

  t.equal(results.length, rows.length)
  for (const { name, metrics, peers } of results) {
    for (const { peer, failures } of peers) {
      const { ['the API server did not take the writes in time']: slow, ...others } = failures
      t.comment(`${name}, a slow machine: ${slow ?? 0}`)
      t.strictSame(others, {}, `${name}, ${peer}: nothing fails`)
    }
    const { figures = {} } = peers.find(({ peer }) => peer === 'hub') ?? {}
    const missing = metrics.filter(({ key }) => figures[key] === undefined)
    t.strictSame(missing, [], `${name}: each figure of the hub`)
  }
})

/**
 * One hub that is all that rows want of hubs of their own, as each takes seconds to start. Only
 * what has to be started anew is.
 */
async function oneForAll(
  upstream: Upstream,
  workspace: Workspace,
): Promise<{ hubs: HubsOfRows; hasDisk: boolean }> {
  const inspector = await freePort()
  const made = disk(workspace.path)
  mkdirSync(workspace.file('own'))
  const under =
    'reason' in made
      ? undefined
      : new FaultyDisk(made.library, workspace.file('own'), workspace.file('control'))
  const asAdministrator = { ...upstream, kubeconfig: upstream.adminKubeconfig }
  const filters = workspace.file('filters.mjs')
  writeFileSync(filters, filtersFor(sizes.growth.filters), { mode: 0o600 })
  const peer = await startHub(asAdministrator, workspace, {
    peer: 'hub',
    name: 'own',
    module: nodehubProgram,
    env: under?.env ?? {},
    nodeFlags: [`--inspect=127.0.0.1:${inspector}`],
    flags: [
      `--node-name=${filteringNode}`,
      '--host-network-propagation=on',
      '--plain-proxy=true',
      '--cache-components=*',
      `--filter-module=${filters}`,
    ],
  })
  const own = { peer, [Symbol.asyncDispose]: () => Promise.resolve() }
  const anew = new OwnHubs(upstream, workspace)
  return {
    hasDisk: under !== undefined,
    hubs: {
      filtering: () => Promise.resolve(own),
      recordingAll: () => Promise.resolve(own),
      inspected: () => Promise.resolve({ ...own, inspector }),
      filteringBy: () => Promise.resolve(own),
      restarted: (...all) => anew.restarted(...all),
      onDisk: () =>
        under ? Promise.resolve({ peer, disk: under }) : Promise.reject(new Error('no disk')),
    },
  }
}

const noHub = (): never => {
  throw new Error('no row here starts a hub')
}
const noHubs: HubsOfRows = {
  filtering: noHub,
  recordingAll: noHub,
  inspected: noHub,
  filteringBy: noHub,
  restarted: noHub,
  onDisk: noHub,
}

void t.test('an answer of another length than the API server gave is a failure', async (t) => {
  const direct = await serving(t, (_request, response) => response.end('x'.repeat(100)))
  const cutting = await serving(t, (_request, response) => response.end('x'.repeat(90)))
  const setting = {
    ...loads,
    direct: direct.target,
    admin: direct.target,
    hubs: noHubs,
    pods,
    warmLists: 1,
    seconds,
  }
  await getRecorded.prime(cutting, setting)
  const { figures, failures } = await getRecorded.measure(cutting, setting)
  t.strictSame(Object.keys(failures), ['90 bytes for 100'])
  t.equal(figures['rate'], 0)
})

void t.test('an answer that breaks off is a failure, and the load goes on', async (t) => {
  let count = 0
  const peer = await serving(t, (_request, response) => {
    response.writeHead(200, { 'Content-Length': 100 })
    count += 1
    // Only once all sizes are known and the peer is warm.
    if (count > 3 * podCount && count % 10 === 0) response.write('x', () => response.destroy())
    else response.end('x'.repeat(100))
  })
  const setting = settingOf(peer)
  await getRecorded.prime(peer, setting)
  const { figures, failures } = await getRecorded.measure(peer, setting)
  t.strictSame(Object.keys(failures), ['the connection was closed'])
  t.ok(positive(figures['rate']))
})

void t.test('a list that is not whole is refused', async (t) => {
  const peer = await serving(t, (_request, response) => response.end('k8s\0'))
  const setting = settingOf(peer)
  await t.rejects(listProtobuf.measure(peer, setting), /a list of 0 instead of 20 pods/)
})

/** What rows measure such a peer with, which stands for the API server as well. */
const settingOf = ({ target }: RunningPeer) => ({
  ...loads,
  direct: target,
  admin: target,
  hubs: noHubs,
  pods,
  warmLists: 1,
  seconds,
})

const positive = (figure: number | undefined): boolean => figure !== undefined && figure > 0
