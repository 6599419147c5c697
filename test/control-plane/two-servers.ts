import { ApiClient } from '../kit/cluster/api-client.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { type HubProcess } from '../kit/cluster/hub-process.ts'
import { until } from '../kit/until.ts'
import type { Scope } from '../kit/cluster/workspace.ts'
import {
  type ApiServer,
  type ControlPlane,
  administrator,
  startControlPlane,
} from '../kit/control-plane.ts'
import { KubectlLoop } from './kubectl-loop.ts'
import { Load, type Read } from './load.ts'
import { busyboxPod } from './pod.ts'
import { TestReflector } from './test-reflector.ts'
import { Writes } from './writes.ts'
import { startNodeHub } from './node.ts'

const readsPerSecond = 200
const writesPerSecond = 10
const pods = '/api/v1/namespaces/default/pods'
const configMaps = '/api/v1/namespaces/default/configmaps'
const json = { accept: 'application/json' }
const protobuf = { accept: 'application/vnd.kubernetes.protobuf,application/json' }

/** By a program whose answers are kept, and by one for which there is nothing but the cloud. */
const reads: readonly Read[] = ['kubelet/v1.36.2', 'reader/1.0'].flatMap((agent) => [
  { path: `${pods}/pod-1`, headers: { ...json, 'user-agent': agent } },
  { path: pods, headers: { ...protobuf, 'user-agent': agent } },
  { path: `${pods}?labelSelector=app%3Dpod-2`, headers: { ...json, 'user-agent': agent } },
  { path: '/api/v1/namespaces/default', headers: { ...protobuf, 'user-agent': agent } },
  { path: '/api/v1/services?resourceVersion=0', headers: { ...json, 'user-agent': agent } },
])

/** What happens to one of the two, while the other is well. Resolves when it is as before. */
interface Misfortune {
  readonly name: string
  strike(server: ApiServer): Promise<void> | void
  mend(server: ApiServer): Promise<unknown> | void
}

const misfortunes: readonly Misfortune[] = [
  {
    name: 'killed',
    strike: ({ daemon }) => daemon.kill(),
    mend: ({ daemon }) => daemon.start(),
  },
  {
    name: 'frozen',
    strike: ({ daemon }) => daemon.freeze(),
    mend: ({ daemon }) => daemon.thaw(),
  },
  {
    name: 'stopped',
    strike: ({ daemon }) => daemon.stop().then(() => undefined),
    mend: ({ daemon }) => daemon.start(),
  },
]

export interface Suffered {
  /** What went wrong with reads, by curl-like clients and by kubectl. */
  readonly readErrors: readonly string[]
  readonly answers: number
  readonly kubectlRuns: number
  /** Of writes that were not acknowledged, what was said of them. */
  readonly writeErrors: readonly string[]
  /** Writes that were acknowledged, and then not there. */
  readonly lost: readonly string[]
  /** Signs of time going backwards, on a watch that went on all the while. */
  readonly anomalies: readonly string[]
  /** What the watching client does not hold in the end of what is there. */
  readonly unseen: readonly string[]
  /**
   * How long the first answer took that was asked for after a server was struck, in milliseconds,
   * and the slowest of that time.
   */
  readonly nextMs: readonly number[]
  readonly slowestMs: readonly number[]
}

/**
 * Two real API servers on one etcd, a hub before them; in turn each is killed, frozen and thawed,
 * stopped and started, `rounds` times in all, under reads, writes, kubectl and a watch.
 */
export async function sufferMisfortunes(t: Scope, rounds: number): Promise<Suffered> {
  const kubectl = findBinaries(['kubectl'])
  if ('missing' in kubectl) throw new Error(kubectl.missing)
  const plane = await startControlPlane(t, { apiservers: 2 })
  await makePods(plane)
  const hub = await startNodeHub(plane, {
    servers: plane.servers.map(({ url }) => url),
    kubeconfig: plane.kubeconfig(administrator),
  })
  await healthyUpstreams(hub, 2)
  const load = new Load(hub.url, reads, readsPerSecond)
  const writes = new Writes(hub.url, configMaps, writesPerSecond)
  const follower = new TestReflector(hub.url, configMaps)
  const people = new KubectlLoop(kubectl.paths.kubectl, hub.url, [
    ['get', 'pods'],
    ['get', 'pod', 'pod-1', '-o', 'yaml'],
    ['get', 'namespaces', '-o', 'name'],
  ])
  const parties = [load, writes, follower, people]
  t.teardown(() => Promise.all(parties.map((party) => party.stop())).then(() => undefined))
  await load.answered(readsPerSecond)

  const nextMs: number[] = []
  const slowestMs: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    // In turns, so that whichever a client was on is the one that is struck.
    const server = plane.servers[round % 2]
    const misfortune = misfortunes[Math.floor(round / 2) % misfortunes.length]
    if (!server || !misfortune) throw new Error('two API servers were started')
    const struckAt = performance.now()
    await misfortune.strike(server)
    await load.answered(readsPerSecond)
    const seen = load.between(struckAt, performance.now())
    nextMs.push(seen.nextMs)
    slowestMs.push(seen.slowestMs)
    t.comment(
      `${round + 1}: ${misfortune.name}; next answer after ${seen.nextMs.toFixed(1)} ms, slowest of ${seen.count}: ${seen.slowestMs.toFixed(0)} ms`,
    )
    await misfortune.mend(server)
    await healthyUpstreams(hub, 2)
  }

  await Promise.all([load.stop(), writes.stop(), people.stop()])
  const there = await namesOf(plane)
  await until('the watching client to hold all', () => there.isSubsetOf(follower.names), {
    seconds: 20,
  }).catch(() => undefined)
  await follower.stop()
  return {
    readErrors: [...load.errors, ...people.errors],
    answers: load.samples.length,
    kubectlRuns: people.runs,
    writeErrors: [...writes.refused.values()],
    lost: [...writes.acknowledged.difference(there)],
    anomalies: follower.anomalies,
    unseen: [...there.difference(follower.names)],
    nextMs,
    slowestMs,
  }
}

async function makePods(plane: ControlPlane): Promise<void> {
  await plane.admin.post('/api/v1/namespaces/default/serviceaccounts', {
    metadata: { name: 'default' },
  })
  for (let number = 0; number < 20; number += 1)
    await plane.admin.post(pods, busyboxPod(`pod-${number}`))
  await until('the pods to be listed', async () => {
    const { items } = (await plane.admin.get(pods)).json()
    return items?.length === 20
  })
}

/** Waits until the hub takes as many API servers for healthy. */
export async function healthyUpstreams({ opsUrl }: HubProcess, wanted: number): Promise<void> {
  const ops = new ApiClient(opsUrl)
  await until(`${wanted} healthy upstreams`, async () => {
    const metrics = (await ops.get('/metrics')).body.toString()
    return (metrics.match(/^nodehub_upstream_healthy\{.*\} 1$/gm)?.length ?? 0) === wanted
  })
}

async function namesOf({ admin }: ControlPlane): Promise<Set<string>> {
  const { items = [] } = (await admin.get(configMaps)).json()
  return new Set(items.map(({ metadata }) => metadata.name))
}
