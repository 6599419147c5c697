import { objectKind, type ListBatch } from '../../api/codec/list.ts'
import type { WatchEvent } from '../../api/codec/watch.ts'
import type {
  Exchange,
  Handler,
  ListReply,
  Reply,
  WatchReply,
} from '../../http/exchange/exchange.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { withDecodedWatches } from './decode-objects.ts'

/** Whether an object shows that another hub has filtered it. */
type IsPropagated = (gvk: GVK, encoding: Encoding, object: ApiObject) => boolean

/**
 * The test for the answer to an exchange; `undefined`: none, or none any more. A test that succeeds
 * makes filters act from then on.
 */
export type DetectPropagation = (exchange: Exchange) => IsPropagated | undefined

/**
 * Breaks off lists and watches with an object that another hub has filtered: the client repeats
 * the request, and then filters act. Until then nothing waits for filters, and everything passes
 * unchanged.
 */
export const withPropagationDetection =
  (detect: DetectPropagation) =>
  (next: Handler<Exchange>): Handler<Exchange> =>
  (exchange) => {
    const isPropagated = detect(exchange)
    return isPropagated
      ? withDecodedWatches(next)(exchange).then((reply) => stopAtPropagated(reply, isPropagated))
      : next(exchange)
  }

function stopAtPropagated(reply: Reply, isPropagated: IsPropagated): Reply {
  if (reply.kind === 'list' && reply.representation.projection === 'object')
    return listUntil(reply, isPropagated)
  if (reply.kind === 'watch') return { ...reply, events: eventsUntil(reply, isPropagated) }
  return reply
}

function listUntil(
  { upstreamBody: _unread, ...reply }: ListReply,
  isPropagated: IsPropagated,
): ListReply {
  const { list, representation } = reply
  const gvk = objectKind(list.gvk)
  const batches = passUntil(list.batches, ({ objects }: ListBatch) =>
    objects.some((object) => isPropagated(gvk, representation.encoding, object)),
  )
  return { ...reply, list: { gvk: list.gvk, head: list.head, batches, end: () => list.end() } }
}

const eventsUntil = ({ events, representation, gvk }: WatchReply, isPropagated: IsPropagated) =>
  passUntil(
    events,
    (group: readonly WatchEvent[]) =>
      representation().projection === 'object' &&
      group.some(
        (event) =>
          'object' in event && isPropagated(gvk(), representation().encoding, event.object),
      ),
  )

async function* passUntil<T>(all: AsyncIterable<T>, isIt: (each: T) => boolean) {
  for await (const each of all) {
    if (isIt(each)) throw new Error('another hub has propagated a pod of this answer')
    yield each
  }
}
