// npm run attack -- MINUTES: every attack on the hub at once, by another user of the node, while
// the node goes on. bench/README.md says more.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiClient } from '../../test/kit/cluster/api-client.ts'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import { plainNode } from '../../test/kit/cluster/plain-node.ts'
import { openWorkspace, type Workspace } from '../../test/kit/cluster/workspace.ts'
import { freePort } from '../../test/kit/free-port.ts'
import { checkout, ensureBuilt } from '../build.ts'
import { mallocSettings } from '../../src/cli/memory-settings.ts'
import { builtHub } from '../peers/hub.ts'
import { Lifetime } from '../lifetime.ts'
import type { Target } from '../load/target.ts'
import { machine } from '../machine.ts'
import { percentile } from '../measure/statistics.ts'
import { noRealUpstream, realUpstream } from '../upstream/control-plane.ts'
import { clientOf, createAll, podsOfNode, podPaths, seed } from '../upstream/seed.ts'
import { nodeName, type Upstream } from '../upstream/upstream.ts'
import type { Outcomes } from './attacker.ts'
import { MemoryGroup } from './memory-group.ts'
import { nodeTraffic, type NodeRequest, type Served } from './node-traffic.ts'
import type { Victim } from './tactics.ts'

const say = (line: string): void => console.log(line)

/** Nobody's uid and gid on Linux. */
const attackerId = 65_534

const memoryBytes = 256 * 1024 * 1024

/** The criteria of the run. */
const limits = { p99Ms: 250, livezMs: 1_000, growth: 0.1 } as const

/** How long the hub runs before what it holds counts as settled, as a share of the attack. */
const settledShare = 0.25

interface RunningHub {
  readonly victim: Omit<Victim, 'powerless' | 'lister'>
  /** The node's own ways in: with its certificate, and as root on the plain port. */
  readonly targets: readonly Target[]
  readonly daemon: Daemon
}

async function startHub(
  { node, kubeconfig }: Upstream,
  workspace: Workspace,
  group: MemoryGroup,
): Promise<RunningHub> {
  const [plainPort, securePort, opsPort] = [await freePort(), await freePort(), await freePort()]
  const ops = new ApiClient(`http://127.0.0.1:${opsPort}`)
  const daemon = new Daemon(workspace, 'hub', {
    ...group.running(
      ...plainNode(
        '--max-semi-space-size=4',
        builtHub(checkout),
        'start',
        `--server-addr=${node.url}`,
        `--kubeconfig=${kubeconfig}`,
        `--node-name=${nodeName}`,
        `--proxy-port=${plainPort}`,
        `--proxy-secure-port=${securePort}`,
        `--serve-port=${opsPort}`,
        `--root-dir=${workspace.file('hub')}`,
        '--cache-max-bytes=64Mi',
        '--enable-dummy-if=false',
      ),
    ),
    env: mallocSettings,
    ready: async () => (await ops.get('/readyz')).status === 200,
  })
  await daemon.start()
  const ca = workspace.file('hub', 'pki', 'ca.crt')
  return {
    victim: { plainPort, securePort, opsPort },
    targets: [
      { ...node, url: `https://127.0.0.1:${securePort}`, ca },
      { url: `http://127.0.0.1:${plainPort}` },
    ],
    daemon,
  }
}

/**
 * Makes what the node reads and writes, and two service accounts for the attacker; returns their
 * tokens.
 */
async function prepare({ admin }: Upstream): Promise<Pick<Victim, 'powerless' | 'lister'>> {
  await seed(admin)
  const accounts = '/api/v1/namespaces/seed/serviceaccounts'
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/seed'
  const group = 'rbac.authorization.k8s.io'
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }]
  await createAll(admin, [
    ...['powerless', 'lister'].map((name) => [accounts, { metadata: { name } }] as const),
    [`${rbac}/roles`, { metadata: { name: 'lister' }, rules }],
    [
      `${rbac}/rolebindings`,
      {
        metadata: { name: 'lister' },
        roleRef: { apiGroup: group, kind: 'Role', name: 'lister' },
        subjects: [{ kind: 'ServiceAccount', name: 'lister', namespace: 'seed' }],
      },
    ],
    [
      '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
      {
        metadata: { name: nodeName },
        spec: { holderIdentity: nodeName, leaseDurationSeconds: 40 },
      },
    ],
  ])
  const client = clientOf(admin)
  const token = async (name: string): Promise<string> => {
    const answer = await client.post(`${accounts}/${name}/token`, { spec: {} })
    if (answer.status !== 201) throw new Error(`no token for ${name}: ${answer.status}`)
    return (answer.json() as unknown as { status: { token: string } }).status.token
  }
  const tokens = { powerless: await token('powerless'), lister: await token('lister') }
  client.close()
  return tokens
}

const asKubelet = { 'User-Agent': 'kubelet/v1.36.2', Accept: 'application/json' } as const

/** The periodic requests of a kubelet. */
const requests: readonly NodeRequest[] = [
  { method: 'GET', path: podPaths()[0] ?? '', headers: asKubelet },
  { method: 'GET', path: `/api/v1/nodes/${nodeName}?resourceVersion=0`, headers: asKubelet },
  {
    method: 'PATCH',
    path: `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${nodeName}`,
    headers: { ...asKubelet, 'Content-Type': 'application/merge-patch+json' },
    body: JSON.stringify({ metadata: { labels: { beat: 'once' } } }),
  },
  { method: 'GET', path: podPaths()[1] ?? '', headers: asKubelet },
  { method: 'GET', path: `${podsOfNode}&limit=20`, headers: asKubelet },
]

const requestsPerSecond = 20

/**
 * Asks for livez twice a second, each time on a connection of its own, as a kubelet's probe does;
 * answers how long each answer took.
 */
async function probes(opsPort: number, signal: AbortSignal): Promise<number[]> {
  const times: number[] = []
  while (!signal.aborted) {
    const begun = performance.now()
    const answer = await new ApiClient(`http://127.0.0.1:${opsPort}`)
      .get('/livez')
      .catch(() => undefined)
    times.push(answer?.status === 200 ? performance.now() - begun : Infinity)
    await sleep(500)
  }
  return times
}

interface Watched {
  readonly served: Served
  readonly livez: readonly number[]
  /** Anonymous memory in MB, once a second. */
  readonly memory: readonly number[]
}

/** The node's traffic and what the hub holds, for `seconds`. */
async function watched(hub: RunningHub, group: MemoryGroup, seconds: number): Promise<Watched> {
  const over = new AbortController()
  const memory: number[] = []
  const looking = (async () => {
    for (let at = 0; at < seconds; at++) {
      memory.push(group.anonymousBytes / 1024 ** 2)
      if (at % 30 === 0) say(`  ${at} s: ${memory.at(-1)?.toFixed(0)} MB`)
      if (!hub.daemon.running) break
      await sleep(1000)
    }
    over.abort()
  })()
  const [served, livez] = await Promise.all([
    nodeTraffic(hub.targets, requests, requestsPerSecond, over.signal),
    probes(hub.victim.opsPort, over.signal),
    looking,
  ])
  return { served, livez, memory }
}

/** Starts the attack; the returned function ends it and returns the result. */
function attack(victim: Victim): () => Promise<Outcomes> {
  const [command, args] = plainNode(join(import.meta.dirname, 'attacker.ts'))
  const child = spawn(command, args, {
    uid: attackerId,
    gid: attackerId,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.write(`${JSON.stringify(victim)}\n`)
  const said = text(child.stdout)
  return async () => {
    child.stdin.end()
    const outcomes = await said
    if (outcomes === '')
      throw new Error(
        `the attacker did not run: uid ${attackerId} must be able to read ${import.meta.dirname} and ${process.execPath}`,
      )
    return JSON.parse(outcomes) as Outcomes
  }
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

/** What the hub did not hold up to; none if all is well. */
function verdict({ served, livez, memory }: Watched, kills: number): string[] {
  const p99 = percentile(served.times, 0.99)
  const late = livez.filter((ms) => ms > limits.livezMs)
  const settled = memory.slice(Math.floor(memory.length * settledShare))
  const part = Math.max(1, Math.floor(settled.length / 4))
  const growth = mean(settled.slice(-part)) / mean(settled.slice(0, part)) - 1
  return [
    ...served.failures,
    ...(p99 > limits.p99Ms ? [`p99 of the node's requests: ${p99.toFixed(0)} ms`] : []),
    ...(late.length > 0 ? [`livez was late ${late.length} times of ${livez.length}`] : []),
    ...(kills > 0 ? [`the kernel killed the hub ${kills} times`] : []),
    ...(growth > limits.growth ? [`memory grew by ${(growth * 100).toFixed(0)} %`] : []),
  ]
}

function tell(title: string, { served, livez, memory }: Watched): void {
  const ms = (values: readonly number[], share: number): string =>
    percentile(values, share).toFixed(0)
  const answers = `${served.times.length} answers, ${served.failures.length} failures`
  const times = `p50 ${ms(served.times, 0.5)}, p99 ${ms(served.times, 0.99)}, slowest ${ms(served.times, 1)} ms`
  const held = `${Math.min(...memory).toFixed(0)} to ${Math.max(...memory).toFixed(0)} MB`
  say(`${title}: ${answers}; ${times}; livez slowest ${ms(livez, 1)} ms; anonymous ${held}`)
}

async function main(): Promise<number> {
  const minutes = Number(process.argv[2] ?? 10)
  const reason = noRealUpstream() ?? (process.getuid?.() === 0 ? undefined : 'only root can')
  if (!(minutes > 0) || reason !== undefined) {
    console.error(`attack: ${reason ?? 'say how many minutes'}`)
    return 2
  }
  ensureBuilt()
  await using lifetime = new Lifetime(say)
  const upstream = await realUpstream(lifetime)
  const tokens = await prepare(upstream)
  const workspace = openWorkspace(lifetime)
  const group = new MemoryGroup(workspace.name, memoryBytes)
  lifetime.teardown(() => group[Symbol.dispose]())
  const hub = await startHub(upstream, workspace, group)
  lifetime.teardown(() => hub.daemon.kill())
  say(`${machine()}\n${upstream.description}; a hub in ${memoryBytes / 1024 ** 2} MiB`)
  const alone = await watched(hub, group, Math.min(20, minutes * 60))
  tell('alone', alone)
  if (alone.served.failures.length > 0)
    throw new Error(alone.served.failures.slice(0, 5).join('\n'))
  const end = attack({ ...hub.victim, ...tokens })
  const seen = await watched(hub, group, minutes * 60)
  for (const [tactic, outcomes] of Object.entries(await end()))
    say(`  ${tactic}: ${JSON.stringify(outcomes)}`)
  tell('under attack', seen)
  const wrong = verdict(seen, group.kills)
  for (const [line, same] of Map.groupBy(wrong, (each) => each.replace(/ after .*/, '')))
    say(`! ${line}${same.length > 1 ? ` (${same.length} times)` : ''}`)
  lifetime.failed = wrong.length > 0
  return lifetime.failed ? 1 : 0
}

process.exitCode = await main()
