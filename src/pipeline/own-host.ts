import { isIPv4 } from 'node:net'
import type { Handler, Incoming, WireReply } from '../exchange/exchange.ts'
import { forbidden, StatusError } from '../kube/status.ts'

/**
 * On loopback, refuses whoever a web page sent (any Origin) and whoever was led here by a name that is not this host's (DNS rebinding):
 * a browser of root's would otherwise act as the node. Elsewhere names are the operator's to give.
 */
export function withOwnHost(ownHosts: ReadonlySet<string>) {
  return (next: Handler<Incoming, WireReply>): Handler<Incoming, WireReply> =>
    (incoming) => {
      if (isLoopback(incoming.peer.localAddress)) {
        if (incoming.headers.get('origin') !== undefined) {
          throw new StatusError(forbidden('requests of web pages are not served'))
        }
        const host = hostOf(incoming.headers.get('host') ?? 'localhost')
        if (host !== 'localhost' && !isLoopback(host) && !ownHosts.has(host)) {
          throw new StatusError(forbidden(`${JSON.stringify(host)} is not a name of this host`))
        }
      }
      return next(incoming)
    }
}

/** Without port and brackets, in lower case. */
const hostOf = (field: string): string =>
  field
    .trim()
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')

function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
}
