import { costOf, each } from '../measure/cost.ts'
import { type Metric, sumOf } from '../measure/row.ts'
import { podPaths, podsOfNode } from '../upstream/seed.ts'
import { json, protobufWatch, recorded } from './callers.ts'
import type { Scenario } from './scenario.ts'

const perSecond = 100

/** Before what counts, to let everything be compiled. */
const warmUpEvents = 50

const metrics: readonly Metric[] = [
  { key: 'addedP50', title: 'added p50 ms', digits: 2 },
  { key: 'addedP99', title: 'added p99 ms', digits: 2 },
  { key: 'delayP50', title: 'delay p50 ms', digits: 2, against: 'direct' },
  { key: 'delayP99', title: 'delay p99 ms', digits: 2, against: 'direct' },
  { key: 'cpu', title: 'cpu ms/event', digits: 3, against: 'haproxy' },
  { key: 'memory', title: 'peak MB', digits: 0 },
]

/**
 * One watch of the node's pods, which are patched at a steady rate directly at the API server. What is added is told event by event
 * against a second watch, of the API server itself: the same event, so that what a write takes there does not count. For the peer
 * `direct` that is one watch against another: how exact the figures can be.
 */
function watches(row: Pick<Scenario, 'name' | 'title'>, mediaType: string): Scenario {
  let next = 0
  return {
    ...row,
    needs: 'online',
    metrics,
    prime: () => Promise.resolve(),
    async measure(peer, { load, writer, direct, admin, seconds }) {
      const headers = { ...recorded, Accept: mediaType }
      const count = seconds * perSecond
      const writes = (count: number) => {
        const from = next
        next += count
        return writer.run('write', { target: admin, paths: podPaths, from, count, perSecond })
      }
      await load.run('watch', { target: peer.target, reference: direct, path: podsOfNode, headers })
      await writes(warmUpEvents)
      const from = next
      const { result, cost } = await costOf(peer.processId, async () => {
        const written = await writes(count)
        const watched = await load.run('watched', { from, to: next, patienceMs: 3000 })
        return { ...watched, failures: sumOf([written.failures, watched.failures]) }
      })
      return {
        figures: {
          addedP50: result.addedP50Ms,
          addedP99: result.addedP99Ms,
          delayP50: result.delayP50Ms,
          delayP99: result.delayP99Ms,
          cpu: each(cost.cpuSeconds, result.events / 1000),
          memory: cost.peakMegabytes,
        },
        failures: result.failures,
        loadShare: result.loadShare,
      }
    },
  }
}

export const watchJson = watches(
  { name: 'watch-json', title: 'WATCH pods in JSON at 100 events/s, as a kubelet' },
  json,
)

export const watchProtobuf = watches(
  { name: 'watch-protobuf', title: 'WATCH pods in protobuf at 100 events/s, as a kubelet' },
  protobufWatch,
)
