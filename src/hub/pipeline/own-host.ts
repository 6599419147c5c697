import type { Handler, Incoming, WireReply } from '../../http/exchange/exchange.ts'
import { forbidden, StatusError } from '../../api/kube/status.ts'
import { rebindingFault } from '../../api/request/host-check.ts'

/**
 * Refuses, on loopback, requests whose Host or Origin is foreign: a web page or somebody's DNS name
 * led the browser here.
 */
export function withOwnHost(ownHosts: ReadonlySet<string>) {
  return (next: Handler<Incoming, WireReply>): Handler<Incoming, WireReply> => {
    const familiar = new Set<string>()
    return (incoming) => {
      const { headers, peer } = incoming
      const { localAddress } = peer
      const [host, origin] = [headers.get('host'), headers.get('origin')]
      const pair =
        host === undefined || origin !== undefined ? undefined : `${localAddress} ${host}`
      if (pair !== undefined && familiar.has(pair)) return next(incoming)
      const strange = rebindingFault(ownHosts, { localAddress, host, origin })
      if (strange !== undefined) throw new StatusError(forbidden(strange))
      if (pair !== undefined && familiar.size < mostFamiliar) familiar.add(pair)
      return next(incoming)
    }
  }
}

/**
 * Addresses of this host with the names by which it is called there: programs use a few, over and
 * over.
 */
const mostFamiliar = 64
