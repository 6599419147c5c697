import { ownVersion } from '../../base/own-version.ts'
import { componentOf, ownComponent } from '../../api/request/component.ts'
import { representationsOf } from '../../api/request/representation.ts'
import type { Identity } from '../../api/request/identity.ts'
import { parseRequestInfo } from '../../api/request/request-info.ts'
import type { Claim, Credential, Exchange } from './exchange.ts'
import { HeaderList } from './headers.ts'

/** In whose name the hub asks. */
export interface RequestCredentials {
  readonly identity: Identity
  readonly credential: Credential
  /** What proves the caller to an API server; absent where the hub's own credentials do. */
  readonly authorization?: string
  /** Told what is answered to it. */
  readonly claim?: Claim
}

export interface OwnRequest extends RequestCredentials {
  readonly method: 'GET' | 'POST' | 'PATCH'
  /** Path and query. */
  readonly url: string
  readonly accept: string
  readonly content?: { readonly type: string; readonly bytes: Buffer }
  /** Whether the answer may come compressed: API servers compress long lists. */
  readonly gzip?: boolean
  /** Whose answers it is recorded among, where that is not the hub itself. */
  readonly component?: string
  /** The User-Agent that an API server's audit log shows; absent: the hub's own. */
  readonly userAgent?: string
  /** As an `Exchange` has it. */
  readonly comparesEvents?: () => boolean
  readonly signal: AbortSignal
}

const ownUserAgent = `${ownComponent}/v${ownVersion()}`

/** No client is at its other end. */
const noPeer = { address: '', port: 0, localAddress: '', localPort: 0 }

let ownRequests = 0

/** A request that the hub makes itself. */
export function ownRequest(request: OwnRequest): Exchange {
  const { method, url, accept, content, gzip, signal } = request
  const { component = ownUserAgent, userAgent = ownUserAgent, comparesEvents } = request
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
    ...(comparesEvents && { comparesEvents }),
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
