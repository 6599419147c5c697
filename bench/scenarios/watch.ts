import type { JobOf } from '../load/jobs.ts'
import type { RunningPeer } from '../peers/peer.ts'
import { podsOfNode } from '../upstream/seed.ts'
import { json, protobufWatch, recorded } from './callers.ts'
import { Delivery, deliveryMetrics } from './delivery.ts'
import type { Scenario, Setting } from './scenario.ts'

const warmUpEvents = 50

/**
 * One watch of the node's pods, which are patched at a steady rate directly at the API server. What
 * is added is told event by event against a second watch, of the API server itself: the same event,
 * so that what a write takes there does not count. For the peer `direct` that is one watch against
 * another: how exact the figures can be.
 */
function watches(row: Pick<Scenario, 'name' | 'title'>, mediaType: string): Scenario {
  const delivery = new Delivery(({ pods }) => pods, warmUpEvents)
  const job = ({ target }: RunningPeer, { direct }: Setting): JobOf<'watch'> => ({
    target,
    reference: direct,
    path: podsOfNode,
    headers: { ...recorded, Accept: mediaType },
  })
  return {
    ...row,
    needs: 'online',
    metrics: deliveryMetrics('direct'),
    prime: (peer, setting) => delivery.warm(setting, job(peer, setting)),
    measure: (peer, setting) => delivery.measure(peer, setting, job(peer, setting)),
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
