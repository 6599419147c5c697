import type { Connections } from '../../http/client/connections.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { endToEnd, type HeaderList } from '../../http/exchange/headers.ts'

/**
 * The client's header fields as the hub sends them upstream, for requests of every kind. It drops
 * hop-by-hop fields and fields that only a proxy may set; with the node's credentials also
 * impersonation and the client's Authorization, which the node's replaces.
 */
export function outgoingHeaders(
  { headers, credential }: Exchange,
  host: string,
  connections: Pick<Connections, 'authorization'>,
): HeaderList {
  const byNode = credential === 'node'
  const passed = endToEnd(headers).without(
    (name) =>
      name === 'host' ||
      name === 'expect' ||
      name.startsWith('x-remote-') ||
      name.startsWith('x-forwarded-') ||
      (byNode && (name.startsWith('impersonate-') || name === 'authorization')),
  )
  const withHost = passed.with('Host', host)
  const authorization = byNode ? connections.authorization('node') : undefined
  return authorization === undefined ? withHost : withHost.with('Authorization', authorization)
}
