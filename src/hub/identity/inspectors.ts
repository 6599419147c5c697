import { createHash, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../../base/secret.ts'
import type { Incoming } from '../../http/exchange/exchange.ts'
import { shownBy } from './bearer-token.ts'
import { isRoot } from './caller.ts'
import type { SocketOwners } from './socket-owner.ts'

export interface InspectorRules {
  /** Absent: no token is accepted. */
  readonly token: Secret<string> | undefined
  readonly owners: SocketOwners
}

/**
 * Whether a caller on this host may have the names of what its pods refer to: root, and callers
 * with the hub's own token. A wrong token counts for no less than none.
 */
export async function mayInspect(
  incoming: Incoming,
  { token, owners }: InspectorRules,
): Promise<boolean> {
  const shown = shownBy(incoming)?.token
  if (shown !== undefined && token !== undefined && isSame(shown, token.reveal())) return true
  return isRoot(incoming.peer, owners)
}

/** In a time that says nothing of where they differ. */
const isSame = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other))

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
