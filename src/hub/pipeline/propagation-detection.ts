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

/** Whether an object shows that an earlier hub has filtered it. */
type IsPropagated = (gvk: GVK, encoding: Encoding, object: ApiObject) => boolean

/**
 * The test for the answer to an exchange; `undefined`: none, or none any more. A test that succeeds
 * makes filters act from then on.
 */
export type DetectPropagation = (exchange: Exchange) => IsPropagated | undefined

/**
 * Breaks off lists and watches with an object that an earlier hub has filtered: the client repeats
 * the request, and then filters act. Until then nothing waits for filters, and everything passes
 * unchanged.
 */
export const withPropagationDetection =
  (noticing: DetectPropagation) =>
  (next: Handler<Exchange>): Handler<Exchange> =>
  (exchange) => {
    const notices = noticing(exchange)
    return notices ? next(exchange).then((reply) => watchedFor(reply, notices)) : next(exchange)
  }

function watchedFor(reply: Reply, notices: IsPropagated): Reply {
  if (reply.kind === 'list' && reply.representation.projection === 'object')
    return listWatchedFor(reply, notices)
  if (reply.kind === 'watch') return { ...reply, events: eventsWatchedFor(reply, notices) }
  return reply
}

function listWatchedFor(
  { upstreamBody: _unread, ...reply }: ListReply,
  notices: IsPropagated,
): ListReply {
  const { list, representation } = reply
  const gvk = objectKind(list.gvk)
  const batches = passedUnless(list.batches, ({ objects }: ListBatch) =>
    objects.some((object) => notices(gvk, representation.encoding, object)),
  )
  return { ...reply, list: { gvk: list.gvk, head: list.head, batches, end: () => list.end() } }
}

const eventsWatchedFor = ({ events, representation, gvk }: WatchReply, notices: IsPropagated) =>
  passedUnless(
    events,
    (group: readonly WatchEvent[]) =>
      representation().projection === 'object' &&
      group.some(
        (event) => 'object' in event && notices(gvk(), representation().encoding, event.object),
      ),
  )

async function* passedUnless<T>(all: AsyncIterable<T>, isIt: (each: T) => boolean) {
  for await (const each of all) {
    if (isIt(each)) throw new Error('what is told was shown otherwise by another hub')
    yield each
  }
}
