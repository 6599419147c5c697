import { onAbort } from '../../base/abort.ts'
import { elapsed, now } from '../../base/clock.ts'
import type {
  BodyReply,
  Exchange,
  Handler,
  Incoming,
  WireReply,
} from '../../http/exchange/exchange.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import { componentOf } from '../../api/request/component.ts'
import { isLongRunning, isWatch } from '../../api/request/request-info.ts'
import { metered } from '../../http/exchange/sink-wrappers.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { TrafficLabels } from '../../metrics/traffic.ts'
import type { Forward } from '../upstream/forward.ts'
import type { OpenWatches } from './open-watches.ts'

/** One answer, for logs: neither its query nor its headers, which may hold secrets. */
export interface AnswerLine {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly verb: string
  /** `endpointslices.discovery.k8s.io`; empty where the request is not about a resource. */
  readonly resource: string
  readonly component: string
  readonly code: number
  readonly source: string
  /** From the request to the end of its answer. */
  readonly ms: number
}

export type OnAnswer = (line: AnswerLine) => void

interface TraceParts {
  readonly metrics: HubMetrics
  readonly watches: OpenWatches
  readonly onAnswer: OnAnswer
}

/**
 * Counts and times each request by verb, resource, component and source, and lists watches while
 * they are open.
 */
export function withTrace({ metrics, watches, onAnswer }: TraceParts) {
  return (next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> =>
    async (exchange) => {
      const began = elapsed()
      const { info } = exchange
      const lasting = isLongRunning(info) || exchange.upgrade
      const watching = isWatch(info)
      const gauge = watching ? metrics.watches : lasting ? undefined : metrics.requestsInFlight
      const traffic = info.isResource ? metrics.traffic(trafficLabels(exchange)) : undefined
      gauge?.add(1)
      if (traffic) traffic.inFlight++
      const watch = watching ? watches.begin(exchange, now()) : undefined
      onAbort(exchange.signal, () => {
        gauge?.add(-1)
        watch?.[Symbol.dispose]()
        if (traffic) traffic.inFlight--
      })
      const reply = await next(exchange)
      watch?.answeredBy(reply.from)
      let code = 0
      const count = (answered: number): void => {
        code = answered
        metrics.requests.add({
          verb: info.verb,
          resource: info.isResource ? info.gvr.resource : '',
          component: exchange.component,
          code: String(code),
          source: reply.from,
        })
      }
      if (reply.kind !== 'upgrade') count(reply.status)
      else if (reply.finalStatus) void reply.finalStatus.then(count)
      else count(101)
      onAbort(exchange.signal, () => {
        const ms = elapsed() - began
        if (!lasting) {
          metrics.requestDuration.observe({ verb: info.verb, source: reply.from }, ms / 1000)
        }
        const { id, method, component } = exchange
        const { verb, path } = info
        const resource = info.isResource ? qualifiedResource(info.gvr) : ''
        onAnswer({ id, method, path, verb, resource, component, code, source: reply.from, ms })
      })
      return reply
    }
}

/**
 * Counts answers to requests that never became exchanges, as they could not be parsed or
 * authenticated.
 */
export function refusalTrace(metrics: HubMetrics, onAnswer: OnAnswer) {
  return (
    { id, method, url, headers, signal }: Incoming,
    { status: code, from: source }: BodyReply,
  ): void => {
    const began = elapsed()
    const component = componentOf(headers.get('user-agent'))
    const verb = method.toLowerCase()
    metrics.requests.add({ verb, resource: '', component, code: String(code), source })
    const [path = ''] = url.split('?')
    onAbort(signal, () =>
      onAnswer({
        id,
        method,
        path,
        verb,
        resource: '',
        component,
        code,
        source,
        ms: elapsed() - began,
      }),
    )
  }
}

/** The labels under which the traffic of a request is counted. */
function trafficLabels({ info, component }: Exchange): TrafficLabels {
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
