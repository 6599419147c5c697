import { createHash, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../../base/secret.ts'
import { isWithinHost } from '../../api/request/host-check.ts'
import type { Exchange, Incoming } from '../../http/exchange/exchange.ts'
import { presentedCredential } from './claims.ts'
import { isRoot } from './caller.ts'
import type { SocketOwners } from './socket-owner.ts'

/**
 * Whether a caller on this host may read the names of the objects that its pods refer to: root, and
 * callers with the hub's own token, if it has one. A wrong token is treated as no token.
 */
export async function mayInspect(
  incoming: Incoming,
  own: Secret<string> | undefined,
  owners: SocketOwners,
): Promise<boolean> {
  const token = presentedCredential(incoming)?.token
  if (token !== undefined && own !== undefined && isSame(token, own.reveal())) return true
  return isRoot(incoming.peer, owners)
}

/** In constant time. */
const isSame = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other))

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/**
 * Whether a caller of a proxy may read explanations of its answers: root of this host by its
 * socket, or a caller with the node's certificate, on loopback.
 */
export async function mayBeExplained(
  { peer, credential }: Pick<Exchange, 'peer' | 'credential'>,
  owners: SocketOwners,
): Promise<boolean> {
  if (!isWithinHost(peer)) return false
  if ((peer.tls?.certificate ?? peer.tls?.outOfDate) && credential === 'node') return true
  return isRoot(peer, owners)
}
