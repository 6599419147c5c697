import { onAbort } from '../../base/abort.ts'
import {
  isProven,
  type Exchange,
  type Handler,
  type WireReply,
} from '../../http/exchange/exchange.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { isLongRunning, type RequestInfo } from '../../api/request/request-info.ts'
import type { Attributes, Span, Tracer } from '../../tracing/span.ts'
import { explained } from './explain.ts'

/**
 * The same handler; it records the span of each sampled request: until the end of its answer or, of
 * a watch, exec and the like, until the head of the answer. The trace of a caller is continued once
 * it is proven: other callers could have the hub export arbitrary data.
 */
export function recordingSpans(
  tracer: Tracer | undefined,
  next: Handler<Exchange, WireReply>,
): Handler<Exchange, WireReply> {
  if (!tracer) return next
  return async (exchange) => {
    const { info, method, headers } = exchange
    const parent = isProven(exchange) ? headers : undefined
    const route = routeOf(info)
    const name = route === undefined ? method : `${method} ${route}`
    const span = tracer.begin(name, requestAttributes(exchange, route), parent)
    if (!span) return next(exchange)
    const lasts = isLongRunning(info) || exchange.upgrade
    const reply = await next({ ...exchange, span }).catch((cause: unknown) => {
      span.end('UNEXPECTED')
      throw cause
    })
    span.set(answerAttributes(reply))
    if (reply.kind === 'upgrade') void ended(reply.finalStatus).then((code) => end(span, code))
    else if (lasts) end(span, reply.status)
    else onAbort(exchange.signal, () => end(span, reply.status))
    return reply
  }
}

const ended = async (finalStatus: Promise<number> | undefined): Promise<number> =>
  (await finalStatus) ?? 101

/** Only a failure of the server counts as an error. */
function end(span: Span, status: number): void {
  if (status > 0) span.set({ 'http.response.status_code': status })
  span.end(status >= 500 ? String(status) : undefined)
}

/** Neither the query nor other header fields: they may hold secrets. */
const requestAttributes = (
  { id, method, info, component, peer }: Exchange,
  route: string | undefined,
): Attributes => ({
  'http.request.method': method,
  'http.route': route,
  'url.path': info.path,
  'url.scheme': peer.tls ? 'https' : 'http',
  'server.address': peer.localAddress,
  'server.port': peer.localPort,
  'nodehub.request.id': id,
  'nodehub.verb': info.verb,
  'nodehub.resource': info.isResource ? qualifiedResource(info.gvr) : undefined,
  'nodehub.component': component,
})

/** The words of X-Nodehub-Explain. */
function answerAttributes(reply: WireReply): Attributes {
  const { source, reason, upstream, age, filters } = explained(reply)
  return {
    'nodehub.source': source,
    'nodehub.reason': reason,
    'nodehub.upstream': upstream,
    'nodehub.age': age === undefined ? undefined : Number(age),
    'nodehub.filters': filters,
  }
}

/** The path without names, which would be too many for names of spans. */
function routeOf(info: RequestInfo): string | undefined {
  if (!info.isResource) return undefined
  const { gvr, namespace, name, subresource } = info
  return [
    gvr.group === '' ? '/api' : `/apis/${gvr.group}`,
    gvr.version,
    ...(namespace === undefined ? [] : ['namespaces', '{namespace}']),
    gvr.resource,
    ...(name === undefined ? [] : ['{name}']),
    ...(subresource === undefined ? [] : [subresource]),
  ].join('/')
}
