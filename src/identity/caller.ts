import { createHmac } from 'node:crypto'
import type { Credential, Incoming } from '../exchange/exchange.ts'
import { forbidden, StatusError, unauthorized } from '../kube/status.ts'
import { node, tokenHolder, type Identity } from '../request/identity.ts'
import { isNodes, isValid } from './certificate.ts'
import type { SocketOwners } from './socket-owner.ts'

/** Who a caller without credentials on the plain listener is: the node if uid 0 owns its socket, the node in any case, nobody. */
export type AnonymousLoopback = 'root' | 'node' | 'none'

export interface Caller {
  readonly identity: Identity
  readonly credential: Credential
  /** When the caller's token says that it ends, in milliseconds since the epoch. Not proved: it can only be held against the caller. */
  readonly expiresAt?: number
}

export interface CallerRules {
  readonly nodeName: string
  /** Whether connections without TLS are served at all. */
  readonly plainServed: boolean
  readonly anonymousLoopback: AnonymousLoopback
  /** Keys the hash that stands for a token, so that what is written to disk says nothing of it. */
  readonly tokenKey: Buffer
  readonly owners: SocketOwners
}

/**
 * Says who is asking; throws the 401 of the API server for who cannot be told. As there, a certificate wins over a token, and one that is
 * not valid is none.
 */
export async function identify(incoming: Incoming, rules: CallerRules): Promise<Caller> {
  const { tls } = incoming.peer
  if (tls?.certificate && isValid(tls.certificate)) {
    if (isNodes(tls.certificate, rules.nodeName)) return { identity: node, credential: 'node' }
    throw new StatusError(forbidden(cannotBePassedOn))
  }
  if (!tls && !rules.plainServed) throw new StatusError(unauthorized())
  const authorization = credentialOf(incoming)
  if (authorization !== undefined) {
    const hash = createHmac('sha256', rules.tokenKey).update(authorization).digest('base64url')
    const expiresAt = expiryOf(authorization)
    return {
      identity: tokenHolder(hash),
      credential: 'caller',
      ...(expiresAt !== undefined && { expiresAt }),
    }
  }
  if (tls || !(await isNode(incoming, rules))) throw new StatusError(unauthorized())
  return { identity: node, credential: 'node' }
}

const cannotBePassedOn =
  "a client certificate cannot be passed on to the API server, and this one is not this node's: use a token, without a certificate"

/** How browsers, which cannot set Authorization on a WebSocket, send a token (apiserver pkg/authentication/request/websocket). */
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'

/** What a caller shows of itself, as the Authorization field would have it. */
function credentialOf({ headers }: Incoming): string | undefined {
  const authorization = headers.get('authorization')
  if (authorization !== undefined) return authorization
  const offered = headers.all('sec-websocket-protocol').flatMap((value) => value.split(','))
  const protocol = offered.map((name) => name.trim()).find((name) => name.startsWith(tokenProtocol))
  if (protocol === undefined) return undefined
  return `Bearer ${Buffer.from(protocol.slice(tokenProtocol.length), 'base64url').toString()}`
}

async function isNode({ peer }: Incoming, rules: CallerRules): Promise<boolean> {
  switch (rules.anonymousLoopback) {
    case 'node':
      return true
    case 'none':
      return false
    case 'root':
      // A table that cannot be read now says nothing of anybody: the caller is refused, and may ask again.
      return (await rules.owners.uid(peer).catch(() => undefined)) === 0
  }
}

/** `exp` of a JSON web token, which is what service accounts carry (RFC 7519 section 4.1.4). */
function expiryOf(authorization: string): number | undefined {
  const [, payload] = authorization.slice('Bearer '.length).split('.')
  if (payload === undefined || payload.length > 16_384) return undefined
  try {
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp?: unknown }
    return typeof claims.exp === 'number' ? claims.exp * 1000 : undefined
  } catch {
    return undefined
  }
}
