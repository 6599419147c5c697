import { ApiClient } from '../kit/cluster/api-client.ts'
import { type HubProcess } from '../kit/cluster/hub-process.ts'
import type { Scope } from '../kit/cluster/workspace.ts'
import { type ApiServer, administrator, startControlPlane } from '../kit/control-plane.ts'
import { until } from '../kit/until.ts'
import { type Link, link } from '../kit/wire/link.ts'
import { begunTooEarly, logsRequests, watchedPaths } from './kubelet-requests.ts'
import { followed, Informers } from './informers.ts'
import { compileProgram } from './programs.ts'
import { nodeReady, podRunning } from './seen.ts'
import { healthyUpstreams } from './two-servers.ts'
import { WatchedObjects, kubeletWatches } from './watched-objects.ts'
import { nodeName, startNodeHub, startNodeKubelet } from './node.ts'

/** An API server that the hub knows, and its way there. */
interface Upstream {
  readonly server: ApiServer
  readonly way: Link
}

interface Surroundings {
  readonly upstreams: readonly Upstream[]
  /** The one whose turn it is. */
  readonly struck: Upstream
  readonly hub: HubProcess
  /** Changes what clients watch, at an API server to which nothing happens. */
  readonly change: () => Promise<string>
  /** Resolves when the informers have had the events of a change, too. */
  readonly observed: (change: string) => Promise<unknown>
}

interface Outage {
  readonly name: string
  /** Resolves when all is as before, but for the hub, which may not know yet. */
  befall(surroundings: Surroundings): Promise<void>
}

/** Each takes some seconds. */
const outages: readonly Outage[] = [
  {
    name: 'all connections reset',
    befall: async ({ upstreams, change }) => {
      for (const { way } of upstreams) way.reset()
      await change()
    },
  },
  {
    name: 'an API server frozen',
    befall: async ({ struck: { server }, hub, change }) => {
      server.daemon.freeze()
      await change()
      await healthyUpstreams(hub, 1)
      await change()
      server.daemon.thaw()
    },
  },
  {
    name: 'no link',
    befall: async ({ upstreams, hub, change }) => {
      for (const { way } of upstreams) way.down()
      await healthyUpstreams(hub, 0)
      await change()
      for (const { way } of upstreams) way.up()
    },
  },
  {
    name: 'an API server killed',
    befall: async ({ struck: { server }, change }) => {
      await server.daemon.kill()
      await change()
      await server.daemon.start()
    },
  },
  {
    name: 'the way to an API server gone',
    befall: async ({ struck: { way }, hub, change }) => {
      way.down()
      await change()
      await healthyUpstreams(hub, 1)
      way.up()
    },
  },
  {
    name: 'an API server stopped, which ends its watches',
    befall: async ({ struck: { server }, change }) => {
      await server.daemon.stop()
      await change()
      await server.daemon.start()
    },
  },
  {
    name: 'all API servers frozen',
    befall: async ({ upstreams, hub, change }) => {
      for (const { server } of upstreams) server.daemon.freeze()
      await healthyUpstreams(hub, 0)
      await change()
      for (const { server } of upstreams) server.daemon.thaw()
    },
  },
  {
    // What changes while the hub does not watch it is answered 410: no API server knows the event.
    name: 'all API servers killed',
    befall: async ({ upstreams, hub, change, observed }) => {
      const watchesAll = (): Promise<true> =>
        until('the hub to watch again', async () => (await upstreamWatches(hub)) >= allWatches)
      await watchesAll()
      await observed(await change())
      for (const { server } of upstreams) await server.daemon.kill()
      await healthyUpstreams(hub, 0)
      await Promise.all(upstreams.map(({ server }) => server.daemon.start()))
      await watchesAll()
    },
  },
]

/** Found by pings, after half a minute. */
const halfOpen: Outage = {
  name: 'connections that carry nothing any more',
  befall: async ({ upstreams, change }) => {
    for (const { way } of upstreams) way.cut()
    await change()
  },
}

export interface Endured {
  /** Paths of the collections that the kubelet watches. */
  readonly kubeletWatches: readonly string[]
  /**
   * Lists that the kubelet and the informers began once all was steady, and watches of theirs that
   * began before the one before had lasted its own time; each with the outage.
   */
  readonly begun: readonly string[]
  /**
   * Events of a watch straight at an API server to which nothing happened that an informer was told
   * otherwise, in another order, more often or not at all; each with the outage.
   */
  readonly differences: readonly string[]
  /** How many events each informer was told. */
  readonly events: number
}

/**
 * A kubelet and client-go's reflectors behind a hub that has two API servers, through `rounds`
 * outages while what they watch changes, and then through a kill of the hub; `slowly`: also those
 * that take long to be found. Says why where there are no reflectors to be had.
 */
export async function endureOutages(
  t: Scope,
  rounds: number,
  { slowly = false } = {},
): Promise<Endured | { readonly missing: string }> {
  const plane = await startControlPlane(t, { apiservers: 3 })
  const compiled = await compileProgram(plane.workspace, 'reflector')
  if ('missing' in compiled) return compiled
  const objects = new WatchedObjects(plane.admin, nodeName)
  await objects.make()
  const upstreams = await Promise.all(
    plane.servers.slice(1).map(async (server) => ({
      server,
      way: await link(t, Number(new URL(server.url).port)),
    })),
  )
  const hub = await startNodeHub(plane, {
    servers: upstreams.map(({ way }) => `https://127.0.0.1:${way.port}`),
  })
  await healthyUpstreams(hub, upstreams.length)
  const kubelet = await startNodeKubelet(t, plane, hub, { flags: [logsRequests] })
  await nodeReady(plane.admin, nodeName)
  await podRunning(plane.admin, objects.pod)
  await until('the kubelet to watch all it watches', () =>
    kubeletWatches.every((path) => watchedPaths(kubelet.daemon.log()).includes(path)),
  )
  const informers = new Informers(plane.workspace, compiled.program, {
    hub: plane.tokenKubeconfig('informer', await objects.token(), hub.secureUrl, hub.authority),
    witness: plane.kubeconfig(administrator),
  })
  t.teardown(() => informers.stop().then(() => undefined))
  await informers.begin()
  // Until an event has come, a first watch may end yet: a client of a filter that the hub has not
  // seen before lists once more.
  await informers.differences(await objects.change())
  await informers.begun()
  const kinds = slowly ? [...outages, halfOpen] : outages
  const begun: string[] = []
  const differences: string[] = []
  let logged = kubelet.daemon.log().length
  const begunSince = async (): Promise<string[]> => {
    const log = kubelet.daemon.log()
    const byKubelet = begunTooEarly(log, logged).map((line) => `kubelet: ${line}`)
    logged = log.length
    return [...byKubelet, ...(await informers.begun())]
  }
  for (let round = 0; round < rounds; round += 1) {
    const outage = kinds[round % kinds.length]
    // In turn, and each kind each of the two.
    const turn = kinds.length % 2 === 0 ? round + Math.floor(round / kinds.length) : round
    const struck = upstreams[turn % upstreams.length]
    if (!outage || !struck) throw new Error('there are outages and upstreams')
    const began = performance.now()
    await outage.befall({
      upstreams,
      struck,
      hub,
      change: () => objects.change(),
      observed: (change) => informers.differences(change),
    })
    await healthyUpstreams(hub, upstreams.length)
    const last = await objects.change()
    const after = (what: string): string => `${round + 1}, ${outage.name}: ${what}`
    differences.push(...(await informers.differences(last)).map(after))
    const lines = await begunSince()
    begun.push(...lines.map(after))
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    t.comment(`${round + 1}: ${outage.name}; ${seconds} s, ${lines.length} lists and early watches`)
  }
  await objects.mounted(kubelet)
  begun.push(...(await begunSince()))
  const events = await informers.events()
  // After a hub that was killed each client may list once; then it holds what is there.
  await hub.daemon.kill()
  await objects.change()
  await hub.daemon.start()
  await informers.begin()
  await objects.mounted(kubelet)
  return {
    kubeletWatches: watchedPaths(kubelet.daemon.log()),
    begun,
    differences,
    events,
  }
}

/**
 * Upstream watches of a hub when all is well: those of the kubelet and of two informers, of which
 * the kubelet's watch of services serves one informer, too, and the hub's own of its node. With one
 * fewer expected, a change may come before the last collection is listed.
 */
const allWatches = kubeletWatches.length + 2 * followed.length - 1 + 1

/** How many watches of API servers the hub has open. */
async function upstreamWatches({ opsUrl }: HubProcess): Promise<number> {
  const metrics = (await new ApiClient(opsUrl).get('/metrics')).body.toString()
  const open = metrics.matchAll(/^nodehub_cacher_upstream_watches (\d+)$/gm)
  return [...open].reduce((sum, [, count]) => sum + Number(count), 0)
}
