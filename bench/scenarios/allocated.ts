import { listSlack, type ReadJob } from '../load/read-load.ts'
import { Held } from '../measure/held.ts'
import { sumOf, type Metric } from '../measure/row.ts'
import { isHub } from '../peers/peer.ts'
import { podsOfNode } from '../upstream/seed.ts'
import { json, passed, recorded } from './callers.ts'
import { perSecond } from './delivery.ts'
import type { Scenario } from './scenario.ts'

const metrics: readonly Metric[] = [
  { key: 'passed', title: 'KB/GET passed on', digits: 1, aims: [{ most: 15 }] },
  { key: 'recorded', title: 'KB/GET recorded', digits: 1, aims: [{ most: 20 }] },
  { key: 'list', title: 'KB/LIST', digits: 0, aims: [{ most: 500 }] },
  { key: 'event', title: 'KB/event', digits: 1, aims: [{ most: 20 }] },
]

const connections = 16

const list = `${podsOfNode}&limit=500&resourceVersion=0`

/** What is done, how often, and what failed meanwhile. */
interface Done {
  readonly times: number
  readonly failures: Readonly<Record<string, number>>
}

let next = 0

/**
 * What the hub allocates for each GET, LIST and event: V8 counts it, garbage included, bodies not,
 * which lie outside of its heap. Other work on the machine does not change it, as it does CPU.
 */
export const allocated: Scenario = {
  name: 'allocated',
  title: 'allocated on the heap of the hub, besides bodies, and soon garbage',
  needs: 'online',
  metrics,
  takes: isHub,
  prime: async (of, { hubs }) => void (await hubs.inspected(of)),
  async measure(of, { load, writer, hubs, direct, admin, pods, seconds }) {
    const { peer, inspector } = await hubs.inspected(of)
    const { target } = peer
    using held = await Held.of(inspector)

    /** The second time counts: what is still compiled allocates more. */
    const second = async (act: () => Promise<Done>, prepare = () => Promise.resolve()) => {
      await prepare()
      await act()
      await prepare()
      const before = await held.allocated()
      const { times, failures } = await act()
      return { failures, each: ((await held.allocated()) - before) / times / 1024 }
    }
    const reads = async (job: Pick<ReadJob, 'headers' | 'paths' | 'slack' | 'connections'>) => {
      const bytes = await load.run('sizesOf', { target, paths: job.paths, headers: job.headers })
      return second(async () => {
        const result = await load.run('read', { ...job, target, bytes, seconds: 2 * seconds })
        return { times: result.answers, failures: result.failures }
      })
    }
    const getsOf = (caller: Readonly<Record<string, string>>) =>
      reads({ headers: { ...caller, Accept: json }, paths: pods, slack: 0, connections })
    const headers = { ...recorded, Accept: json }
    const events = async (): Promise<Done> => {
      const [from, times] = [next, Math.ceil(seconds * perSecond)]
      next += times
      const job = { target: admin, paths: pods, from, count: times, perSecond }
      const written = await writer.run('write', job)
      const watched = await load.run('watched', { from, to: next, patienceMs: 5_000 })
      return { times, failures: sumOf([written.failures, watched.failures]) }
    }
    const watch = { target, reference: direct, path: podsOfNode, headers }

    const all = {
      passed: await getsOf(passed),
      recorded: await getsOf(recorded),
      list: await reads({ headers, paths: [list], slack: listSlack, connections: 1 }),
      event: await second(events, () => load.run('watch', watch)),
    }
    return {
      figures: Object.fromEntries(Object.entries(all).map(([key, { each }]) => [key, each])),
      failures: sumOf(Object.values(all).map(({ failures }) => failures)),
      loadShare: 0,
    }
  },
}
