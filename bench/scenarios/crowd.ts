import { openConnections } from '../measure/open-connections.ts'
import { costOf, each } from '../measure/cost.ts'
import { type Metric, sumOf } from '../measure/row.ts'
import { isOfFew } from '../peers/peer.ts'
import { nodeName } from '../upstream/upstream.ts'
import { podNamespace } from '../upstream/seed.ts'
import { json, recorded } from './callers.ts'
import type { Scenario } from './scenario.ts'

const perSecond = 100

const metrics: readonly Metric[] = [
  { key: 'connections', title: 'upstream connections', digits: 0, aims: [{ most: 8 }] },
  { key: 'delayP50', title: 'delay p50 ms', digits: 2, against: 'direct' },
  { key: 'delayP99', title: 'delay p99 ms', digits: 2, against: 'direct' },
  { key: 'cpu', title: 'cpu ms/event', digits: 3, against: 'haproxy-http' },
  { key: 'memory', title: 'peak MB', digits: 0 },
]

/**
 * One pod each, as a kubelet watches what its pods mount; beyond the number of pods again from the
 * first.
 */
const pathOf = (pod: number): string => {
  const selector = encodeURIComponent(`metadata.name=seed-${pod},spec.nodeName=${nodeName}`)
  return `/api/v1/namespaces/${podNamespace}/pods?fieldSelector=${selector}`
}

let next = 0

/** Many watches of one caller; each event belongs to one of them, or two. */
export const crowd = (watchers: number): Scenario => ({
  name: 'crowd',
  title: `${watchers} watches of one kubelet, 100 events/s among them`,
  needs: 'online',
  metrics,
  takes: isOfFew,
  prime: () => Promise.resolve(),
  async measure(peer, { load, writer, direct, admin, pods, seconds }) {
    const headers = { ...recorded, Accept: json }
    const count = Math.ceil(seconds * perSecond)
    const paths = Array.from({ length: watchers }, (_, at) => pathOf(at % pods.length))
    await load.run('crowd', { target: peer.target, paths, headers })
    // Without a process between, the connections are the clients' own.
    const connections =
      peer.processId === undefined
        ? watchers
        : openConnections(peer.processId, Number(new URL(direct.url).port))
    const from = next
    next += count
    const { result, cost } = await costOf(peer.processId, async () => {
      const job = { target: admin, paths: pods, from, count, perSecond }
      const written = await writer.run('write', job)
      const seen = await load.run('crowdSeen', { from, to: next, patienceMs: 30_000 })
      return { ...seen, failures: sumOf([written.failures, seen.failures]) }
    })
    return {
      figures: {
        connections,
        delayP50: result.delayP50Ms,
        delayP99: result.delayP99Ms,
        cpu: each(cost.cpuSeconds, result.events / 1000),
        memory: cost.peakMegabytes,
      },
      failures: result.failures,
      loadShare: 0,
    }
  },
})
