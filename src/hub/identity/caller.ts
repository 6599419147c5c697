import { isExpectedFault } from '../../base/expected-fault.ts'
import type {
  Claim,
  ClientCertificate,
  Credential,
  Exchange,
  Incoming,
  Peer,
} from '../../http/exchange/exchange.ts'
import { impersonates } from '../../http/exchange/headers.ts'
import { forbidden, serviceUnavailable, StatusError, unauthorized } from '../../api/kube/status.ts'
import { nodeIdentity, type Identity } from '../../api/request/identity.ts'
import { isWithinHost } from '../../api/request/host-check.ts'
import type { Reach } from '../answers/on-site-reads.ts'
import { presentedCredential, type Claims } from './claims.ts'
import type { AcceptedCertificates } from './accepted-certificates.ts'
import { isValidNow, namesNode } from './certificate.ts'
import type { SocketOwners } from './socket-owner.ts'

/**
 * The identity of a caller without credentials, on the plain listener and, while the hub is
 * offline, on the one with TLS. `root`: the node, if uid 0 owns the client's socket. `node`: always
 * the node. `none`: unauthenticated.
 */
export type AnonymousLoopback = 'root' | 'node' | 'none'

export interface Caller {
  readonly identity: Identity
  readonly credential: Credential
  /** Absent where the connection itself has proved the identity. */
  readonly claim?: Claim
  /** See `Exchange`. */
  readonly knownUntil?: AbortSignal
}

export interface AuthenticationRules {
  readonly nodeName: string
  /** Whether the hub serves connections without TLS. */
  readonly plainServed: boolean
  readonly anonymousLoopback: AnonymousLoopback
  readonly claims: Claims
  readonly owners: SocketOwners
  readonly accepted: Pick<AcceptedCertificates, 'add' | 'wasGood'>
  readonly outage: Outage
}

/** The state of the API servers, for callers that count only while none answers the hub. */
export interface Outage {
  /**
   * Resolves with a signal that aborts when the hub ceases to answer the node's requests from the
   * cache; `undefined` where it does not.
   */
  readonly offline: () => Promise<AbortSignal | undefined>
  /** Called for each request of a caller that is the node for this outage only. */
  readonly onOfflineNode: (outage: AbortSignal, certificate: ClientCertificate | undefined) => void
}

/**
 * Authenticates a request. Throws 401 where the caller cannot be identified, 403 where the caller
 * cannot be the identity it presents, 503 where the hub cannot find that out. As in the API server,
 * a certificate takes precedence over a token, and an invalid certificate is ignored, unless the
 * hub is offline. A promise only where something has to be found out.
 */
export function authenticate(
  incoming: Incoming,
  rules: AuthenticationRules,
): Caller | Promise<Caller> {
  const { tls } = incoming.peer
  const certificate = tls?.certificate
  if (certificate && isValidNow(certificate)) {
    if (!namesNode(certificate, rules.nodeName)) throw new StatusError(forbidden(cannotBePassedOn))
    if (isWithinHost(incoming.peer)) rules.accepted.add(certificate)
    return nodeCaller(incoming)
  }
  if (!tls && !rules.plainServed) throw new StatusError(unauthorized(), { reason: notServed })
  const presented = presentedCredential(incoming)
  if (presented) {
    const claim = rules.claims.of(presented)
    return claim instanceof Promise ? claim.then(byToken) : byToken(claim)
  }
  if (tls) return offlineNodeCaller(incoming, tls, rules)
  const node = isNode(incoming, rules)
  return typeof node === 'boolean'
    ? bySocket(incoming, node)
    : node.then((is) => bySocket(incoming, is))
}

const byToken = (claim: Claim): Caller => ({
  identity: claim.identity(),
  claim,
  credential: 'caller',
})

function bySocket(incoming: Incoming, isNode: boolean): Caller {
  if (!isNode) throw new StatusError(unauthorized(), { reason: unknown })
  return nodeCaller(incoming)
}

const notServed = 'the plain port serves no one: --plain-proxy=true'
const unknown =
  "it shows no token, no certificate of this node, and is not root's socket on loopback"

/**
 * The node as the caller, which may not impersonate. With the node's credentials, an API server
 * would check the hub's right to impersonate, not the caller's; without the impersonation headers,
 * it would answer as the node a request that was made for another user.
 */
function nodeCaller({ headers }: Incoming): Caller {
  if (impersonates(headers)) throw new StatusError(forbidden(cannotImpersonate))
  return { identity: nodeIdentity, credential: 'node' }
}

/**
 * The node at the TLS listener by proofs that count on loopback and offline only. A kubelet that
 * cannot renew its certificate shows it after its end, or before its beginning by a clock that
 * starts in 1970; one that rotates it (client-go) shows none once it has ended, and is known by its
 * socket as on the plain listener. At 401 either would take the API server for healthy, and end
 * itself.
 */
async function offlineNodeCaller(
  incoming: Incoming,
  tls: NonNullable<Peer['tls']>,
  rules: AuthenticationRules,
): Promise<Caller> {
  const certificate = tls.certificate ?? tls.outOfDate
  const mayBeTheNode = certificate
    ? wasTheNodes(certificate, incoming.peer, rules)
    : tls.withoutCertificate === true && rules.plainServed
  const knownUntil = mayBeTheNode ? await rules.outage.offline() : undefined
  if (!knownUntil || !(certificate ?? (await isNode(incoming, rules))))
    throw new StatusError(unauthorized(), { reason: unknown })
  rules.outage.onOfflineNode(knownUntil, certificate)
  return { ...nodeCaller(incoming), knownUntil }
}

const wasTheNodes = (
  certificate: ClientCertificate,
  peer: Peer,
  { nodeName, accepted }: AuthenticationRules,
): boolean =>
  isWithinHost(peer) && namesNode(certificate, nodeName) && accepted.wasGood(certificate)

const cannotImpersonate =
  "impersonation is not possible with the node's credentials: use a token of your own, or a kubeconfig of your own directly against the API server"

const cannotBePassedOn =
  "a client certificate cannot be passed on to the API server, and this one is not this node's: use a token, without a certificate"

/**
 * Applies on loopback only. At another address a Host header of any name passes, so a browser of
 * root under DNS rebinding, or a probe of a pod with that address, would be the node. Both ends
 * must be loopback: with net.ipv4.conf.*.route_localnet, which kube-proxy sets, another machine on
 * the link can send to 127.0.0.1.
 */
function isNode({ peer }: Incoming, rules: AuthenticationRules): boolean | Promise<boolean> {
  if (!isWithinHost(peer)) return false
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
 * Whether root owns the client's socket on this host. Throws 503 where the owner cannot be looked
 * up, so that a kubelet repeats the request; a later call tries again.
 */
export function isRoot(peer: Peer, owners: SocketOwners): boolean | Promise<boolean> {
  const uid = owners.uid(peer)
  return typeof uid === 'number' ? uid === 0 : isRootOnce(uid)
}

async function isRootOnce(known: Promise<number | undefined>): Promise<boolean> {
  try {
    return (await known) === 0
  } catch (cause) {
    if (!(cause instanceof Error) || !isExpectedFault(cause)) throw cause
    const reason = `${ownerUnknown}: ${cause.message}`
    throw new StatusError(serviceUnavailable(ownerUnknown), { reason, cause })
  }
}

const ownerUnknown = 'the hub cannot look up which user owns the socket of the caller'

/**
 * Whose records the hub shows a person at the node offline. Everyone's to a caller with the
 * kubelet's certificate, whose key only root can read, also after its end (see
 * `offlineNodeCaller`). The node's to a caller that is root by its socket: so is a container on the
 * host's network whose user is 0, and which cannot read the hub's files. Loopback excludes a
 * machine that has the certificate, and no right at this node.
 */
export async function reachAtNode(
  { peer, identity, credential }: Pick<Exchange, 'peer' | 'identity' | 'credential'>,
  owners: SocketOwners,
): Promise<Reach> {
  if (identity !== nodeIdentity || credential !== 'node') return 'own'
  if (!isWithinHost(peer)) return 'own'
  if (peer.tls?.certificate ?? peer.tls?.outOfDate) return 'everyone'
  return (await isRoot(peer, owners)) ? 'node' : 'own'
}
