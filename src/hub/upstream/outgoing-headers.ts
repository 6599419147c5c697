import type { Connections } from '../../http/client/connections.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { Span } from '../../tracing/span.ts'
import { HeaderList, hopByHopIn } from '../../http/exchange/headers.ts'

/**
 * The client's header fields as the hub sends them upstream, for requests of every kind. It drops
 * hop-by-hop fields and fields that only a proxy may set; with the node's credentials also
 * impersonation and the client's Authorization, which the node's replaces. The fields of a trace
 * pass unchanged, unless the hub records it: then they name `span`.
 */
export function outgoingHeaders(
  { headers, credential }: Exchange,
  host: string,
  connections: Pick<Connections, 'authorization'>,
  span: Span | undefined,
): HeaderList {
  const byNode = credential === 'node'
  const isHopByHop = hopByHopIn(headers)
  const passed = headers.without(
    (name) =>
      isHopByHop(name) ||
      name === 'host' ||
      name === 'expect' ||
      name.startsWith('x-remote-') ||
      name.startsWith('x-forwarded-') ||
      (span !== undefined && (name === 'traceparent' || name === 'tracestate')) ||
      (byNode && (name.startsWith('impersonate-') || name === 'authorization')),
  )
  const raw = [...passed.raw, 'Host', host]
  if (span) for (const field of span.contextFields) raw.push(...field)
  const authorization = byNode ? connections.authorization('node') : undefined
  if (authorization !== undefined) raw.push('Authorization', authorization)
  return new HeaderList(raw)
}
