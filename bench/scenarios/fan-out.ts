import { costOf, each } from '../measure/cost.ts'
import { openConnections } from '../measure/open-connections.ts'
import { type Metric, sumOf } from '../measure/row.ts'
import { isOfFew } from '../peers/peer.ts'
import { seedServices, servicePaths, servicesPath } from '../upstream/services.ts'
import { json, recorded } from './callers.ts'
import type { Scenario } from './scenario.ts'
import type { Sizes } from './sizes.ts'

const metricsOf = (watchers: number): readonly Metric[] => [
  { key: 'delayP50', title: 'delay p50 ms', digits: 2, against: 'direct' },
  {
    key: 'delayP99',
    title: 'delay p99 ms',
    digits: 2,
    against: 'direct',
    ...(watchers === 50 && { aims: [{ most: 1, to: 'direct' }] }),
  },
  { key: 'cpu', title: 'cpu us/delivery', digits: 1, against: 'haproxy-http' },
  { key: 'connections', title: 'upstream connections', digits: 0 },
  { key: 'memory', title: 'peak MB', digits: 0 },
]

/** Stamps are counted over all rows of this kind, so that none is taken for another's. */
let next = 0

/**
 * Many watches of all services, which a hub shares among them; each event goes to every one of
 * them.
 */
function fanOut({ watchers, perSecond }: Sizes['fanOut'][number]): Scenario {
  const count = watchers.toLocaleString('en-US')
  return {
    name: `fan-out-${watchers}`,
    title: `${count} watches of all services in JSON, ${perSecond} events/s to each`,
    needs: 'online',
    metrics: metricsOf(watchers),
    takes: isOfFew,
    prime: (_peer, { admin }) => seedServices(admin),
    async measure(peer, { load, writer, direct, admin, seconds }) {
      const headers = { ...recorded, Accept: json }
      const events = Math.ceil(seconds * perSecond)
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
      next += events
      const { result, cost } = await costOf(peer.processId, async () => {
        const job = { target: admin, paths: servicePaths, from, count: events, perSecond }
        const written = await writer.run('write', job)
        const seen = await load.run('fanOutSeen', { from, to: from + events, patienceMs: 30_000 })
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

export const fanOutRows = (sizes: Sizes['fanOut']): readonly Scenario[] => sizes.map(fanOut)
