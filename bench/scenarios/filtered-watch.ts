import { costOf, each } from '../measure/cost.ts'
import { type Metric, sumOf } from '../measure/row.ts'
import { filteredObjects, filteredPath, seedFiltered } from '../upstream/filtered.ts'
import { json, protobufWatch } from './callers.ts'
import type { Scenario } from './scenario.ts'

const perSecond = 100
const count = 500
/** Each comes again after a while, always as another version. */
const patched = 100
/** Before what counts, to let everything be compiled. */
const warmUpEvents = 100

const metrics: readonly Metric[] = [
  { key: 'addedP50', title: 'added p50 ms', digits: 2 },
  { key: 'addedP99', title: 'added p99 ms', digits: 2 },
  { key: 'delayP50', title: 'delay p50 ms', digits: 2 },
  { key: 'delayP99', title: 'delay p99 ms', digits: 2 },
  { key: 'cpu', title: 'cpu ms/event', digits: 3 },
  { key: 'memory', title: 'peak MB', digits: 0 },
]

/**
 * Two watches of the same endpointslices at one hub, one of them through servicetopology, while the slices are patched. What is added is
 * told event by event: by how much the filtered one came later than the other.
 */
function filteredWatches(encoding: 'json' | 'protobuf', mediaType: string): Scenario {
  const path = filteredPath('endpointslices', count)
  let next = 0
  return {
    name: `filtered-watch-${encoding}`,
    title: `WATCH endpointslices in ${encoding} at ${perSecond} events/s, through a filter and beside it without`,
    needs: 'online',
    metrics,
    takes: ({ name }) => name === 'hub',
    prime: (_peer, { admin }) => seedFiltered(admin, 'endpointslices', count),
    async measure(_peer, { load, writer, admin, filteringHub, seconds }) {
      if (!filteringHub) throw new Error('a hub of its own is needed')
      await using own = await filteringHub()
      const { target, processId } = own.peer
      const as = (component: string) => ({
        'User-Agent': `${component}/v1.36.0`,
        Accept: mediaType,
      })
      const writes = (events: number) => {
        const from = next
        next += events
        const paths = filteredObjects('endpointslices', count, patched)
        return writer.run('write', { target: admin, paths, from, count: events, perSecond })
      }
      await load.run('watch', {
        target,
        reference: target,
        path,
        headers: as('kube-proxy'),
        referenceHeaders: as('flanneld'),
      })
      await writes(warmUpEvents)
      const from = next
      const { result, cost } = await costOf(processId, async () => {
        const written = await writes(seconds * perSecond)
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

export const filteredWatchRows: readonly Scenario[] = [
  filteredWatches('json', json),
  filteredWatches('protobuf', protobufWatch),
]
