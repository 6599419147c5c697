import { ApiClient } from '../kit/cluster/api-client.ts'
import { type HubProcess, startHubProcess } from '../kit/cluster/hub-process.ts'
import { until } from '../kit/until.ts'
import type { Scope } from '../kit/cluster/workspace.ts'
import { type ControlPlane, administrator, startControlPlane } from '../kit/control-plane.ts'
import { type Link, link } from '../kit/wire/link.ts'
import { Churn, paths } from './churn.ts'
import { compileProgram } from './programs.ts'
import { Reflectors } from './reflectors.ts'

/** What becomes of a round, while objects change in the cloud. */
interface Surroundings {
  readonly plane: ControlPlane
  readonly way: Link
  readonly hub: HubProcess
  readonly churn: Churn
}

/** A way in which clients are cut off; resolves when all is as before. */
interface Cut {
  readonly name: string
  /**
   * What answers has forgotten what happened before: an API server answers older versions with 410,
   * a hub that was restarted those of clients for which a filter acts. Each lists once.
   */
  readonly forgets?: true
  befall(surroundings: Surroundings): Promise<void>
}

const cuts: readonly Cut[] = [
  {
    name: 'the connections to the API server reset',
    befall: async ({ way, churn }) => {
      way.reset()
      await churn.round()
    },
  },
  {
    name: 'no link for a while',
    befall: async ({ way, hub, churn }) => {
      way.down()
      await online(hub, false)
      await churn.round()
      way.up()
      await online(hub, true)
    },
  },
  {
    name: 'the hub killed',
    forgets: true,
    befall: async ({ hub, churn }) => {
      await hub.daemon.kill()
      await churn.round()
      await hub.daemon.start()
    },
  },
  {
    name: 'no link, and the hub killed and started without one',
    forgets: true,
    befall: async ({ way, hub, churn }) => {
      way.down()
      await online(hub, false)
      await hub.daemon.restart()
      await churn.round()
      await online(hub, false)
      way.up()
      await online(hub, true)
    },
  },
  {
    name: 'the API server killed',
    forgets: true,
    befall: async ({ plane, hub, churn }) => {
      await plane.first.daemon.kill()
      await online(hub, false)
      await plane.first.daemon.start()
      await churn.round()
      await online(hub, true)
    },
  },
]

export interface Converged {
  /** What reflectors held otherwise than the API server, after a cut and time enough. */
  readonly differences: readonly string[]
  /**
   * Requests for a whole collection beyond the first, by the cut after which they came, and those
   * for which neither an API server nor a restart of the hub was to blame.
   */
  readonly relists: Readonly<Record<string, number>>
  readonly needless: number
  readonly reflectors: number
}

/**
 * How long a client may take to come back: client-go waits up to half a minute and its jitter
 * between two attempts, and twice where the first is answered 410, since it waits before its list,
 * too.
 */
const patienceSeconds = 135

/**
 * client-go's reflectors behind a hub, in both encodings, with WatchList and without, through
 * `rounds` cuts; after each they are to hold what the API server holds. Says why where there are no
 * reflectors to be had.
 */
export async function sufferCuts(
  t: Scope,
  rounds: number,
): Promise<Converged | { readonly missing: string }> {
  const plane = await startControlPlane(t)
  const compiled = await compileProgram(plane.workspace, 'reflector')
  if ('missing' in compiled) return compiled
  const way = await link(t, Number(new URL(plane.url).port))
  const hub = await startHubProcess(plane.workspace, {
    servers: [`https://127.0.0.1:${way.port}`],
    kubeconfig: plane.kubeconfig(administrator),
    nodeName: 'edge-1',
  })
  const churn = new Churn(plane.admin)
  await churn.begin()
  await online(hub, true)
  const kubeconfig = plane.kubeconfig(administrator, hub.url)
  const parties = (['protobuf', 'json'] as const).flatMap((encoding) =>
    [true, false].map((watchList) => ({
      name: `${encoding} by ${watchList ? 'WatchList' : 'list and watch'}`,
      reflectors: new Reflectors(plane.workspace, {
        program: compiled.program,
        kubeconfig,
        encoding,
        watchList,
        follow: Object.keys(paths),
      }),
    })),
  )
  t.teardown(() => Promise.all(parties.map((each) => each.reflectors.stop())).then(() => undefined))
  const differences: string[] = []
  const settle = async (after: string): Promise<void> => {
    for (const { name, reflectors } of parties) {
      let last: string[] = []
      await until(
        `${name} to converge after ${after}`,
        async () => {
          last = await differing(plane.admin, reflectors)
          return last.length === 0
        },
        { seconds: patienceSeconds },
      ).catch(() => differences.push(...last.map((each) => `${after}: ${name}: ${each}`)))
    }
  }
  const requests = async (): Promise<{ lists: number; reflectors: number }> => {
    const shown = await Promise.all(parties.map(({ reflectors }) => reflectors.show()))
    const held = shown.flatMap((each) => Object.values(each))
    const lists = held.reduce((sum, each) => sum + each.lists + each.watchLists, 0)
    return { lists, reflectors: held.length }
  }
  const relists: Record<string, number> = {}
  let needless = 0
  await settle('the start')
  for (let round = 0; round < rounds; round += 1) {
    const cut = cuts[round % cuts.length]
    if (!cut) throw new Error('there are cuts')
    // A watch that ends within a second without an event makes its client list anew, whatever ended
    // it.
    await churn.round()
    await settle('changes')
    const began = performance.now()
    const before = await requests()
    await cut.befall({ plane, way, hub, churn })
    await settle(`cut ${round + 1}, ${cut.name}`)
    const seconds = (performance.now() - began) / 1000
    const { lists } = await requests()
    relists[cut.name] = (relists[cut.name] ?? 0) + lists - before.lists
    if (!cut.forgets) needless += lists - before.lists
    t.comment(`${round + 1}: ${cut.name}; ${seconds.toFixed(1)} s, ${lists - before.lists} relists`)
  }
  return { differences, relists, needless, reflectors: (await requests()).reflectors }
}

/** What the reflectors hold otherwise than the API server. */
async function differing(admin: ApiClient, reflectors: Reflectors): Promise<string[]> {
  const held = await reflectors.show()
  const found: string[] = []
  for (const [resource, path] of Object.entries(paths)) {
    const { items = [] } = (await admin.get(path)).json()
    const there = Object.fromEntries(
      items.map(({ metadata: { namespace = '', name, resourceVersion = '' } }) => [
        `${namespace}/${name}`,
        resourceVersion,
      ]),
    )
    const objects = held[resource]?.objects ?? {}
    for (const name of new Set([...Object.keys(there), ...Object.keys(objects)]))
      if (there[name] !== objects[name])
        found.push(`${resource} ${name}: ${objects[name] ?? 'none'}, not ${there[name] ?? 'none'}`)
  }
  return found
}

async function online({ opsUrl }: HubProcess, wanted: boolean): Promise<void> {
  const ops = new ApiClient(opsUrl)
  await until(`the hub to be ${wanted ? 'online' : 'offline'}`, async () => {
    // Metrics are made once a second, and a watch that begins meanwhile is a short one when the hub
    // is killed.
    const { body } = await ops.get('/readyz?verbose')
    return body.includes(wanted ? ']cloud online' : ']cloud offline')
  })
}
