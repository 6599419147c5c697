import { isHub } from '../peers/peer.ts'
import { filteredObjects, filteredPath, seedFiltered } from '../upstream/filtered.ts'
import { json, protobufWatch } from './callers.ts'
import { Delivery, deliveryMetrics, perSecond } from './delivery.ts'
import type { Scenario } from './scenario.ts'

const count = 500
/** Each comes again after a while, always as another version. */
const patched = 100
const warmUpEvents = 100
const patchedSlices = filteredObjects('endpointslices', count, patched)

/**
 * Two watches of the same endpointslices at one hub, one of them through servicetopology, while the
 * slices are patched. What is added is told event by event: by how much the filtered one came later
 * than the other.
 */
function filteredWatches(encoding: 'json' | 'protobuf', mediaType: string): Scenario {
  const path = filteredPath('endpointslices', count)
  const delivery = new Delivery(() => patchedSlices, warmUpEvents)
  const as = (component: string) => ({
    'User-Agent': `${component}/v1.36.0`,
    Accept: mediaType,
  })
  return {
    name: `filtered-watch-${encoding}`,
    title: `WATCH endpointslices in ${encoding} at ${perSecond} events/s, through a filter and beside it without`,
    needs: 'online',
    metrics: deliveryMetrics(),
    takes: isHub,
    prime: (_peer, { admin }) => seedFiltered(admin, 'endpointslices', count),
    async measure(of, setting) {
      await using own = await setting.hubs.filtering(of)
      const { target } = own.peer
      return await delivery.measure(own.peer, setting, {
        target,
        reference: target,
        path,
        headers: as('kube-proxy'),
        referenceHeaders: as('flanneld'),
      })
    },
  }
}

export const filteredWatchRows: readonly Scenario[] = [
  filteredWatches('json', json),
  filteredWatches('protobuf', protobufWatch),
]
