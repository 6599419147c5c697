import { onAbort } from '../../base/abort.ts'
import { after } from '../../base/clock.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import type { Exchange, Handler, Reply } from '../../http/exchange/exchange.ts'
import { ownRequest, type OwnRequest } from '../../http/exchange/own-request.ts'
import { isExpected, type OnUnexpected } from '../pipeline/failures.ts'
import { discard } from '../upstream/forward.ts'
import type { ownComponent } from '../../api/request/component.ts'
import { nodeIdentity } from '../../api/request/identity.ts'

/** A request that the hub makes itself, with the node's credentials. */
export type NodeRequest = Pick<OwnRequest, 'method' | 'url' | 'accept' | 'content'> & {
  /** Whose answers it is recorded among, if any: the kubelet's are what it would ask for itself. */
  readonly component: 'kubelet' | typeof ownComponent
}

export type NodeRequests = (request: NodeRequest) => Promise<number>

const asNode = { identity: nodeIdentity, credential: 'node', gzip: true } as const

/** An answer that takes longer is given up. */
const patienceMs = 30_000

/**
 * Makes requests of the hub's own, which go the way of the node's to the cloud, and whose answers
 * are stored with the node's, unfiltered. Resolves with the code of the API server's answer once
 * that is stored whole; 0 where there was none, and where the cache answered in its place, or where
 * it failed in a way that is not foreseen, which `onUnexpected` is told. `closing` gives up all.
 */
export function nodeRequests(
  dispatch: Handler<Exchange>,
  closing: AbortSignal,
  onUnexpected: OnUnexpected,
): NodeRequests {
  return async (request) => {
    const over = new AbortController()
    using _patience = after(patienceMs, () => over.abort())
    using _closing = onAbort(closing, () => over.abort())
    try {
      return await codeOf(
        await dispatch(ownRequest({ ...asNode, ...request, signal: over.signal })),
      )
    } catch (error) {
      // No API server answered, the answer broke off, or the cache has nothing: the request is
      // repeated later.
      const isOver = over.signal.aborted || error instanceof MalformedBody
      if (!isOver && !isExpected(error)) onUnexpected(error, request)
      return 0
    } finally {
      over.abort()
    }
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
