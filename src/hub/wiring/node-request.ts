import { onAbort } from '../../base/abort.ts'
import { afterAwake } from '../../base/clock.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import type { Exchange, Handler, Reply, RequestFollower } from '../../http/exchange/exchange.ts'
import { ownRequest, type OwnRequest } from '../../http/exchange/own-request.ts'
import { isExpected, type OnUnexpected } from '../pipeline/failures.ts'
import { discard } from '../upstream/forward.ts'
import type { ownComponent } from '../../api/request/component.ts'
import { nodeIdentity } from '../../api/request/identity.ts'

/** A request that the hub makes itself, with the node's credentials. */
export type NodeRequest = Pick<OwnRequest, 'method' | 'url' | 'accept' | 'content'> & {
  /**
   * The component under which the answer is recorded: the kubelet's are those that it would read
   * itself.
   */
  readonly component: 'kubelet' | typeof ownComponent
}

export type NodeRequests = (request: NodeRequest) => Promise<number>

const asNode = { identity: nodeIdentity, credential: 'node', gzip: true } as const

/**
 * An answer of which nothing arrives for longer is given up. A link may be slow: as long as bytes
 * arrive, an answer takes as long as it takes.
 */
export const nodePatienceMs = 30_000

/**
 * Makes requests of the hub with the node's credentials; their answers are recorded with the
 * node's, unfiltered. Resolves with the status code of the API server's answer after that is
 * stored; with 0 where there was none, where the cache answered in its place, or after an
 * unexpected failure, for which `onUnexpected` is called. `closing` cancels all.
 */
export function nodeRequests(
  dispatch: Handler<Exchange>,
  closing: AbortSignal,
  onUnexpected: OnUnexpected,
): NodeRequests {
  return async (request) => {
    const over = new AbortController()
    const giveUp = (): void => over.abort()
    let patience = afterAwake(nodePatienceMs, giveUp)
    const follower: RequestFollower = {
      sent: () => undefined,
      received: () => {
        patience[Symbol.dispose]()
        patience = afterAwake(nodePatienceMs, giveUp)
      },
    }
    using _closing = onAbort(closing, giveUp)
    try {
      const own = { ...asNode, ...request, signal: over.signal, follower }
      return await codeOf(await dispatch(ownRequest(own)))
    } catch (error) {
      // No API server answered, the answer broke off, or the cache has none: the caller retries
      // later.
      const isOver = over.signal.aborted || error instanceof MalformedBody
      if (!isOver && !isExpected(error)) onUnexpected(error, request)
      return 0
    } finally {
      giveUp()
      patience[Symbol.dispose]()
    }
  }
}

/** Reads an answer to its end, which stores it. */
async function codeOf(reply: Reply): Promise<number> {
  if (reply.from !== 'cloud' || reply.kind === 'upgrade' || reply.kind === 'watch') return 0
  if (reply.kind === 'bytes') discard(reply)
  if (reply.kind === 'list') {
    for await (const _ of reply.list.batches);
    await reply.list.end()
  }
  return reply.status
}
