import type { Exchange } from '../../http/exchange/exchange.ts'
import { metered } from '../../http/exchange/sink-wrappers.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { TrafficLabels } from '../../metrics/traffic.ts'
import type { Forward } from '../upstream/forward.ts'

/** The labels under which the traffic of a request is counted. */
export function trafficLabels({ info, component }: Exchange): TrafficLabels {
  return {
    verb: info.verb,
    resource: info.isResource ? info.gvr.resource : '',
    subresources: (info.isResource ? info.subresource : undefined) ?? '',
    client: component,
  }
}

/**
 * The same forwarder; it counts the bytes of answers as they arrive, so that a watch counts while
 * it lasts.
 */
export const countingBytes =
  (forward: Forward, metrics: HubMetrics): Forward =>
  async (exchange, options) => {
    const reply = await forward(exchange, options)
    const traffic = metrics.traffic(trafficLabels(exchange))
    return {
      ...reply,
      source: metered(reply.source, (bytes) => void (traffic.receivedBytes += bytes)),
    }
  }
