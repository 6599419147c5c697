import type { Claim, Credential, Incoming, Peer } from '../../http/exchange/exchange.ts'
import { impersonates } from '../../http/exchange/headers.ts'
import { forbidden, StatusError, unauthorized } from '../../api/kube/status.ts'
import { node, type Identity } from '../../api/request/identity.ts'
import { isLoopback } from '../../api/request/own-host.ts'
import { shownBy } from './bearer-token.ts'
import type { Claims } from './claims.ts'
import { isNodes, isValid } from './certificate.ts'
import type { SocketOwners } from './socket-owner.ts'

/**
 * Who a caller without credentials on the plain listener is: `root`: the node if uid 0 owns its
 * socket; `node`: always the node; `none`: nobody.
 */
export type AnonymousLoopback = 'root' | 'node' | 'none'

export interface Caller {
  readonly identity: Identity
  readonly credential: Credential
  /** Absent where the connection itself has proved the identity. */
  readonly claim?: Claim
}

export interface CallerRules {
  readonly nodeName: string
  /** Whether connections without TLS are served at all. */
  readonly plainServed: boolean
  readonly anonymousLoopback: AnonymousLoopback
  readonly claims: Claims
  readonly owners: SocketOwners
}

/**
 * Finds out who is asking; throws a 401 where that cannot be told, a 403 where the caller cannot be
 * who it says. As at an API server, a certificate wins over a token, and one that is not valid
 * counts for nothing.
 */
export async function identify(incoming: Incoming, rules: CallerRules): Promise<Caller> {
  const { tls } = incoming.peer
  if (tls?.certificate && isValid(tls.certificate)) {
    if (isNodes(tls.certificate, rules.nodeName)) return asNode(incoming)
    throw new StatusError(forbidden(cannotBePassedOn))
  }
  if (!tls && !rules.plainServed) throw new StatusError(unauthorized())
  const shown = shownBy(incoming)
  if (shown) return { ...rules.claims.of(shown), credential: 'caller' }
  if (tls || !(await isNode(incoming, rules))) throw new StatusError(unauthorized())
  return asNode(incoming)
}

/**
 * The node. It speaks for itself alone: with its credentials an API server would check the hub's
 * right to impersonate, not the caller's, and without the fields it would answer as the node what
 * was asked as another.
 */
function asNode({ headers }: Incoming): Caller {
  if (impersonates(headers)) throw new StatusError(forbidden(cannotImpersonate))
  return { identity: node, credential: 'node' }
}

const cannotImpersonate =
  "impersonation is not possible with the node's credentials: use a token of your own, or a kubeconfig of your own directly against the API server"

const cannotBePassedOn =
  "a client certificate cannot be passed on to the API server, and this one is not this node's: use a token, without a certificate"

/**
 * The rule holds on loopback only: at another address a Host of any name passes, so that DNS
 * rebinding in a browser of root's, or a probe of a pod with that address, would be the node. Both
 * ends have to be there: with net.ipv4.conf.*.route_localnet, as kube-proxy sets it, a machine
 * beside this one can send to 127.0.0.1.
 */
async function isNode({ peer }: Incoming, rules: CallerRules): Promise<boolean> {
  if (!isLoopback(peer.localAddress) || !isLoopback(peer.address)) return false
  switch (rules.anonymousLoopback) {
    case 'node':
      return true
    case 'none':
      return false
    case 'root':
      return isRoot(peer, rules.owners)
  }
}

/**
 * Whether the other end is a socket of root's on this host. Where that cannot be found out it is
 * not, and may ask again.
 */
export const isRoot = async (peer: Peer, owners: SocketOwners): Promise<boolean> =>
  (await owners.uid(peer).catch(() => undefined)) === 0
