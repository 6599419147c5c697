import { ownVersion } from '../../base/own-version.ts'
import { componentOf, ownComponent } from '../../api/request/component.ts'
import { representationsOf } from '../../api/request/representation.ts'
import type { Identity } from '../../api/request/identity.ts'
import { parseRequestInfo } from '../../api/request/request-info.ts'
import { isProven, type Claim, type Credential, type Exchange } from './exchange.ts'
import { HeaderList } from './headers.ts'

/** The identity and credentials of a request that the hub makes. */
export interface RequestCredentials {
  readonly identity: Identity
  readonly credential: Credential
  /** The Authorization value of the caller; absent where the hub's own credentials authenticate. */
  readonly authorization?: string
  /** Gets the upstream's answer. */
  readonly claim?: Claim
}

/**
 * The caller's credentials for requests that the hub makes on its behalf; `undefined`: the caller
 * is not proven.
 */
export function requestCredentialsOf(exchange: Exchange): RequestCredentials | undefined {
  if (!isProven(exchange)) return undefined
  const { identity, credential, headers, claim } = exchange
  if (credential === 'node') return { identity, credential }
  const authorization = headers.get('authorization')
  if (authorization === undefined) return undefined
  return { identity, credential, authorization, ...(claim && { claim }) }
}

export interface OwnRequest extends RequestCredentials {
  readonly method: 'GET' | 'POST' | 'PATCH'
  /** Path and query. */
  readonly url: string
  readonly accept: string
  readonly content?: { readonly type: string; readonly bytes: Buffer }
  /** Whether the answer may be compressed: API servers compress long lists. */
  readonly gzip?: boolean
  /** The User-Agent in an API server's audit log; absent: the hub's own. */
  readonly userAgent?: string
  /** The component under which the answer is recorded; absent: that of the User-Agent. */
  readonly component?: string
  /** See `Exchange`. */
  readonly follower?: Exchange['follower']
  readonly signal: AbortSignal
}

const ownUserAgent = `${ownComponent}/v${ownVersion()}`

/** The hub's own requests have no client connection. */
const noPeer = { address: '', port: 0, localAddress: '', localPort: 0 }

let ownRequests = 0

/** A request that the hub makes itself. */
export function ownRequest(request: OwnRequest): Exchange {
  const { method, url, accept, content, gzip, signal } = request
  const { userAgent = ownUserAgent, component = userAgent, follower } = request
  const { identity, credential, authorization, claim } = request
  const info = parseRequestInfo(method, url)
  ownRequests += 1
  return {
    id: `own-${ownRequests}`,
    method,
    url,
    headers: new HeaderList([
      'User-Agent',
      userAgent,
      'Accept',
      accept,
      ...(gzip ? ['Accept-Encoding', 'gzip'] : []),
      ...(authorization === undefined ? [] : ['Authorization', authorization]),
      ...(content ? lengthAndType(content) : []),
    ]),
    peer: noPeer,
    upgrade: false,
    signal,
    info,
    component: componentOf(component),
    identity,
    credential,
    ...(claim && { claim }),
    ...(follower && { follower }),
    representations: representationsOf(accept, info.query),
    ...(content && { content: content.bytes }),
  }
}

const lengthAndType = ({ type, bytes }: NonNullable<OwnRequest['content']>): readonly string[] => [
  'Content-Type',
  type,
  'Content-Length',
  String(bytes.byteLength),
]
