import type { Connections } from '../client/connections.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { endToEnd, type HeaderList } from '../exchange/headers.ts'

/**
 * What of a client's fields goes upstream, for requests of every kind: not what concerns one connection, not what only proxies may say,
 * and, with the node's credentials, nothing that would speak for somebody else; those credentials then take the place of the client's.
 */
export function outgoingHeaders(
  { headers, credential }: Exchange,
  origin: string,
  connections: Connections,
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
  const withHost = passed.with('Host', new URL(origin).host)
  const authorization = byNode ? connections.authorization('node') : undefined
  return authorization === undefined ? withHost : withHost.with('Authorization', authorization)
}
