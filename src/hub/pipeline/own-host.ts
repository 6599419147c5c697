import type { Handler, Incoming, WireReply } from '../../http/exchange/exchange.ts'
import { forbidden, StatusError } from '../../api/kube/status.ts'
import { rebindingFault } from '../../api/request/host-check.ts'

/**
 * Refuses requests on loopback with a foreign Host or Origin: a web page or a rebound DNS name
 * directed a browser here.
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

/** The number of address and Host pairs remembered: programs repeat a few. */
const mostFamiliar = 64
