import { onAbort } from '../base/abort.ts'
import { after } from '../base/clock.ts'
import { ownVersion } from '../base/own-version.ts'
import type { Exchange, Handler, Reply } from '../exchange/exchange.ts'
import { HeaderList } from '../exchange/headers.ts'
import { discard } from '../remote/forward.ts'
import { componentOf } from '../request/component.ts'
import { formsOf } from '../request/form.ts'
import { node } from '../request/identity.ts'
import { parseRequestInfo } from '../request/request-info.ts'

/** A request that the hub makes itself, with the node's credentials. */
export interface NodeRequest {
  readonly method: 'GET' | 'PATCH'
  /** Path and query. */
  readonly url: string
  readonly accept: string
  /** Whose answers it is recorded among, if any: the kubelet's are what it would ask for itself. */
  readonly component: 'kubelet' | 'nodehub'
  readonly content?: { readonly type: string; readonly bytes: Buffer }
}

export type NodeRequests = (request: NodeRequest) => Promise<number>

/** An answer that takes longer is given up. */
const patienceMs = 30_000

/**
 * Makes requests of the hub's own, which go the way of the node's to the cloud, and whose answers are stored with the node's, unfiltered.
 * Resolves with the code of the API server's answer once that is stored whole; 0 where there was none, and where the cache answered in
 * its place. `closing` gives up all.
 */
export function nodeRequests(dispatch: Handler<Exchange>, closing: AbortSignal): NodeRequests {
  let made = 0
  return async (request) => {
    const over = new AbortController()
    using _patience = after(patienceMs, () => over.abort())
    using _closing = onAbort(closing, () => over.abort())
    try {
      return await codeOf(await dispatch(exchangeOf(request, `hub-${(made += 1)}`, over.signal)))
    } catch {
      // Nobody answered, the answer broke off, or the cache has nothing: all is one to who asks again later.
      return 0
    } finally {
      over.abort()
    }
  }
}

function exchangeOf(
  { method, url, accept, component, content }: NodeRequest,
  id: string,
  signal: AbortSignal,
): Exchange {
  const info = parseRequestInfo(method, url)
  const body = content
    ? ['Content-Type', content.type, 'Content-Length', String(content.bytes.byteLength)]
    : []
  return {
    id,
    method,
    url,
    // Whatever it is recorded among, the API server's audit log is to show who asked.
    headers: new HeaderList([
      'Accept',
      accept,
      'Accept-Encoding',
      'gzip',
      'User-Agent',
      `nodehub/${ownVersion()}`,
      ...body,
    ]),
    peer: { address: '127.0.0.1', port: 0, localAddress: '127.0.0.1', localPort: 0 },
    upgrade: false,
    signal,
    info,
    component: componentOf(component),
    identity: node,
    credential: 'node',
    forms: formsOf(accept, info.query),
    ...(content && { content: content.bytes }),
  }
}

/** Reads an answer to its end, so that it is stored. */
async function codeOf(reply: Reply): Promise<number> {
  if (reply.from !== 'cloud' || reply.kind === 'upgrade') return 0
  switch (reply.kind) {
    case 'list': {
      for await (const _ of reply.list.batches);
      await reply.list.end()
      return reply.status
    }
    case 'bytes':
      discard(reply)
      return reply.status
    case 'watch':
      return 0
    case 'body':
    case 'object':
      return reply.status
  }
}
