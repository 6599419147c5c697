import type { ByteSource, Exchange } from '../exchange/exchange.ts'
import type { HubMetrics } from '../metrics/metrics.ts'
import type { Traffic, TrafficLabels } from '../metrics/traffic.ts'
import type { Forward } from '../remote/forward.ts'

/** As what a request counts. */
export function trafficLabels({ info, component }: Exchange): TrafficLabels {
  return {
    verb: info.verb,
    resource: info.isResource ? info.gvr.resource : '',
    subresources: (info.isResource ? info.subresource : undefined) ?? '',
    client: component,
  }
}

/** The same forwarder, with the bytes that come back counted as they come: of a watch, too, while it lasts. */
export const countingBytes =
  (forward: Forward, metrics: HubMetrics): Forward =>
  async (exchange, options) => {
    const reply = await forward(exchange, options)
    return { ...reply, source: counted(reply.source, metrics.traffic(trafficLabels(exchange))) }
  }

const counted =
  (source: ByteSource, traffic: Traffic): ByteSource =>
  (sink) =>
    source({
      write: (chunk) => {
        traffic.receivedBytes += chunk.byteLength
        return sink.write(chunk)
      },
      drained: () => sink.drained(),
      end: (trailers) => sink.end(trailers),
      fail: (cause) => sink.fail(cause),
    })
