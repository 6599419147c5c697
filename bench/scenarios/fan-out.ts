import { costOf, each } from '../measure/cost.ts'
import { openConnections } from '../measure/open-connections.ts'
import { type Metric, sumOf } from '../measure/row.ts'
import { seedServices, servicePaths, servicesPath } from '../upstream/services.ts'
import { json, recorded } from './callers.ts'
import type { Scenario } from './scenario.ts'

const metrics: readonly Metric[] = [
  { key: 'delayP50', title: 'delay p50 ms', digits: 2, against: 'direct' },
  { key: 'delayP99', title: 'delay p99 ms', digits: 2, against: 'direct' },
  { key: 'cpu', title: 'cpu us/delivery', digits: 1, against: 'haproxy' },
  { key: 'connections', title: 'upstream connections', digits: 0 },
  { key: 'memory', title: 'peak MB', digits: 0 },
]

/** Stamps are counted over all rows of this kind, so that none is taken for another's. */
let next = 0

/**
 * Many watches of all services, which a hub shares among them; each event goes to every one of
 * them.
 */
function fanOut(
  row: Pick<Scenario, 'name' | 'title'>,
  { watchers, perSecond }: { watchers: number; perSecond: number },
): Scenario {
  return {
    ...row,
    needs: 'online',
    metrics,
    // It keeps the head of a watch until the first event.
    takes: ({ name }) => name !== 'http-proxy',
    prime: (_peer, { admin }) => seedServices(admin),
    async measure(peer, { load, writer, direct, admin, seconds }) {
      const headers = { ...recorded, Accept: json }
      const count = seconds * perSecond
      await load.run('fanOut', {
        target: peer.target,
        path: servicesPath,
        count: watchers,
        headers,
      })
      const connections =
        peer.processId === undefined
          ? watchers
          : openConnections(peer.processId, Number(new URL(direct.url).port))
      const from = next
      next += count
      const { result, cost } = await costOf(peer.processId, async () => {
        const job = { target: admin, paths: servicePaths, from, count, perSecond }
        const written = await writer.run('write', job)
        const seen = await load.run('fanOutSeen', { from, to: from + count, patienceMs: 30_000 })
        return { ...seen, failures: sumOf([written.failures, seen.failures]) }
      })
      return {
        figures: {
          delayP50: result.delayP50Ms,
          delayP99: result.delayP99Ms,
          cpu: each(cost.cpuSeconds && cost.cpuSeconds * 1e6, result.deliveries),
          connections,
          memory: cost.peakMegabytes,
        },
        failures: result.failures,
        loadShare: result.loadShare,
      }
    },
  }
}

export const fanOut50 = fanOut(
  { name: 'fan-out-50', title: '50 watches of all services in JSON, 100 events/s to each' },
  { watchers: 50, perSecond: 100 },
)

export const fanOut1000 = fanOut(
  { name: 'fan-out-1000', title: '1,000 watches of all services in JSON, 10 events/s to each' },
  { watchers: 1000, perSecond: 10 },
)
