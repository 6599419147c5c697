import type { AbortSignalLike } from '../../src/base/abort.ts'
import { HeaderList } from '../../src/http/exchange/headers.ts'
import type { BodyReply, Claim, Exchange } from '../../src/http/exchange/exchange.ts'
import { componentOf } from '../../src/api/request/component.ts'
import { representationsOf } from '../../src/api/request/representation.ts'
import { nodeIdentity, unprovenIdentity } from '../../src/api/request/identity.ts'
import { parseRequestInfo } from '../../src/api/request/request-info.ts'

export interface ExchangeOptions {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignalLike
  readonly upgrade?: boolean
}

/** An empty answer of the cloud. */
export const emptyReply: BodyReply = {
  kind: 'body',
  status: 200,
  headers: new HeaderList(),
  from: 'cloud',
  body: Buffer.alloc(0),
}

/** An unproven claim of a token, with changes. */
export const claimOf = (known: Partial<Claim> = {}): Claim => ({
  holds: () => false,
  identity: () => unprovenIdentity,
  verifiedIdentity: async () => unprovenIdentity,
  onUpstreamAnswer: () => undefined,
  keyId: undefined,
  ...known,
})

/** An exchange of the node's kubelet after the layers that parse and authenticate a request. */
export function exchangeOf(url: string, described: ExchangeOptions = {}): Exchange {
  const { method = 'GET', signal = new AbortController().signal, upgrade = false } = described
  const fields = { 'User-Agent': 'kubelet/v1.35.0', ...described.headers }
  const headers = new HeaderList(Object.entries(fields).flat())
  const info = parseRequestInfo(method, url)
  return {
    id: 'an-id',
    method,
    url,
    headers,
    peer: { address: '127.0.0.1', port: 40_000, localAddress: '127.0.0.1', localPort: 10_261 },
    upgrade,
    signal,
    info,
    component: componentOf(headers.get('user-agent')),
    identity: nodeIdentity,
    credential: 'node',
    representations: representationsOf(headers.get('accept'), info.query),
  }
}
