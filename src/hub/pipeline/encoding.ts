import { BufferPool } from '../../base/bytes.ts'
import { elapsed, sleep } from '../../base/clock.ts'
import { objectBody } from '../../api/codec/object.ts'
import { listItems, listSeparator } from '../../api/codec/render.ts'
import { minWatchMs, type WatchEvent } from '../../api/codec/watch.ts'
import { eventFrame } from '../../api/codec/event-frame.ts'
import { sourceOf } from '../../http/exchange/chunks.ts'
import type {
  Exchange,
  Handler,
  ListReply,
  ObjectReply,
  Reply,
  WatchReply,
  WireReply,
} from '../../http/exchange/exchange.ts'
import { failureReply, type OnUnexpected } from './failures.ts'
import { withLength } from '../../http/exchange/unpacked.ts'

/**
 * Encodes objects in their representation; an unchanged object leaves in its own bytes. The end of
 * a list is sent only after its commit. A failure becomes a Status in the encoding that the client
 * accepts.
 */
export const withEncoding =
  (onUnexpected: OnUnexpected) =>
  (next: Handler<Exchange>): Handler<Exchange, WireReply> =>
  (exchange) => {
    const failed = (error: unknown): WireReply => failureReply(error, exchange, onUnexpected)
    try {
      return next(exchange).then((reply) => {
        try {
          return encoded(reply)
        } catch (error) {
          return failed(error)
        }
      }, failed)
    } catch (error) {
      return Promise.resolve(failed(error))
    }
  }

function encoded(reply: Reply): WireReply {
  switch (reply.kind) {
    case 'bytes':
    case 'body':
    case 'upgrade':
      return reply
    case 'object': {
      const { representation, gvk, object, headers } = reply
      if (reply.body) return { ...headOf(reply), kind: 'body', body: reply.body }
      const body = objectBody(representation.encoding, gvk, object)
      return { ...headOf(reply), kind: 'body', headers: withLength(headers, body), body }
    }
    case 'list':
      return streamed(reply, listBody(reply))
    case 'watch':
      return streamed(reply, watchBody(reply))
  }
}

/** A body that is encoded as it is sent, at the pace of the client. */
function streamed(
  reply: ListReply | WatchReply,
  body: AsyncGenerator<readonly Uint8Array[]>,
): WireReply {
  const source = sourceOf(body, (chunk) => buffers.releaseOf(chunk))
  return { ...headOf(reply), kind: 'bytes', source }
}

/** The part of an answer that is the same in every representation. */
const headOf = ({ status, headers, from, explanation }: ObjectReply | ListReply | WatchReply) => ({
  status,
  headers,
  from,
  ...(explanation && { explanation }),
})

/** Objects and events are copied into these: a write for each would cost more. */
const buffers = new BufferPool()

async function* listBody({
  representation,
  list,
}: ListReply): AsyncGenerator<readonly Uint8Array[]> {
  yield list.head
  const { encoding } = representation
  let separator: readonly Uint8Array[] = []
  for await (const { objects, bytes } of list.batches) {
    if (objects.length === 0) continue
    const parts = [...separator, ...(bytes ?? listItems(encoding, objects))]
    if (bytes) yield parts
    else for (const chunk of buffers.joined(parts)) yield [chunk]
    separator = listSeparator(encoding)
  }
  yield (await list.end()).tail
}

/**
 * The frames of events that several watches share, each in one representation; collected with the
 * event.
 */
const written = new WeakMap<WatchEvent, Uint8Array>()

/**
 * A watch that ends at once, as at an API server that shuts down, is held open for `minWatchMs`, so
 * that its client continues from its version instead of listing again.
 */
async function* watchBody({
  representation,
  events,
  gvk,
  isShared,
}: WatchReply): AsyncGenerator<readonly Uint8Array[]> {
  const began = elapsed()
  let silent = true
  for await (const group of events) {
    const frames = group.map((event) => {
      if (event.frame) return event.frame
      const { encoding } = representation()
      const known = isShared ? written.get(event) : undefined
      const frame = known ?? eventFrame(encoding, gvk(), event)
      if (isShared) written.set(event, frame)
      return frame
    })
    // Events that arrived together leave in one write, initial events in few.
    for (const chunk of buffers.joined(frames)) yield [chunk]
    silent = false
  }
  if (silent) await sleep(Math.max(minWatchMs - (elapsed() - began), 0))
}
