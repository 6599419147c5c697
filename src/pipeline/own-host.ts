import type { Handler, Incoming, WireReply } from '../exchange/exchange.ts'
import { forbidden, StatusError } from '../kube/status.ts'
import { strangeTo } from '../request/own-host.ts'

/** Refuses, on loopback, whoever was led here by a web page or a name of somebody else's. */
export function withOwnHost(ownHosts: ReadonlySet<string>) {
  return (next: Handler<Incoming, WireReply>): Handler<Incoming, WireReply> =>
    (incoming) => {
      const { headers, peer } = incoming
      const { localAddress } = peer
      const [host, origin] = [headers.get('host'), headers.get('origin')]
      const strange = strangeTo(ownHosts, { localAddress, host, origin })
      if (strange !== undefined) throw new StatusError(forbidden(strange))
      return next(incoming)
    }
}
