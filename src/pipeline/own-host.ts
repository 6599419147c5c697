import type { Handler, Incoming, WireReply } from '../exchange/exchange.ts'
import { forbidden, StatusError } from '../kube/status.ts'
import { strangeTo } from '../request/own-host.ts'

/** Refuses, on loopback, requests whose Host or Origin is foreign: a web page or somebody's DNS name led the browser here. */
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
