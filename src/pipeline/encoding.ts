import { joined, lengthOf } from '../base/bytes.ts'
import { elapsed, sleep } from '../base/clock.ts'
import type { ListBatch } from '../codec/list.ts'
import { objectBody } from '../codec/object.ts'
import { listItems, listJoint } from '../codec/render.ts'
import { shortestWatchMs } from '../codec/watch.ts'
import { eventFrame } from '../codec/event-frame.ts'
import type {
  ByteSource,
  Exchange,
  Handler,
  ListReply,
  Reply,
  Sink,
  WatchReply,
  WireReply,
} from '../exchange/exchange.ts'
import type { HeaderList } from '../exchange/headers.ts'
import type { Encoding } from '../kube/media-type.ts'

/**
 * Objects become bytes here, in the form they are in; what nobody changed leaves in the bytes it came in. A list's close waits for
 * whoever records it.
 */
export function withEncoding(next: Handler<Exchange>): Handler<Exchange, WireReply> {
  return async (exchange) => encoded(await next(exchange))
}

function encoded(reply: Reply): WireReply {
  switch (reply.kind) {
    case 'bytes':
    case 'body':
    case 'upgrade':
      return reply
    case 'object': {
      const { form, gvk, object, status, headers, from } = reply
      if (reply.body) return { kind: 'body', status, headers, from, body: reply.body }
      const body = objectBody(form.encoding, form.shape, gvk, object)
      return { kind: 'body', status, headers: withLength(headers, body), from, body }
    }
    case 'list':
      return streamed(reply, writeList(reply))
    case 'watch':
      return streamed(reply, writeWatch(reply))
  }
}

const withLength = (headers: HeaderList, body: Uint8Array): HeaderList =>
  headers
    .without((name) => name === 'content-length')
    .with('Content-Length', String(body.byteLength))

type Writer = (write: (chunks: readonly Uint8Array[]) => Promise<void>) => Promise<void>

/** A body written by `writer`, which waits where the client is slow and stops where it has gone. */
function streamed(reply: ListReply | WatchReply, writer: Writer): WireReply {
  const { status, headers, from } = reply
  return { kind: 'bytes', status, headers, from, source: sourceOf(writer) }
}

class NotWanted extends Error {
  readonly code = 'NOT_WANTED'
}

function sourceOf(writer: Writer): ByteSource {
  return (sink: Sink) => {
    let wanted = true
    const write = async (chunks: readonly Uint8Array[]): Promise<void> => {
      for (const chunk of chunks) {
        if (!wanted) throw new NotWanted()
        if (!sink.write(chunk)) await sink.drained()
      }
    }
    writer(write).then(
      () => wanted && sink.end(),
      (cause: unknown) => {
        if (wanted) sink.fail(cause instanceof Error ? cause : new Error('failed', { cause }))
      },
    )
    return () => {
      wanted = false
    }
  }
}

function writeList({ form, list }: ListReply): Writer {
  return async (write) => {
    await write(list.head)
    let first = true
    for await (const batch of list.batches) {
      if (batch.objects.length === 0) continue
      if (!first) await write(listJoint(form.encoding))
      await write(bytesOf(batch, form.encoding))
      first = false
    }
    await write((await list.end()).tail)
  }
}

/** One write for a batch made here: a write for each of its objects would cost more than the copy. */
const bytesOf = (batch: ListBatch, encoding: Encoding): readonly Uint8Array[] =>
  batch.bytes ?? [joined(listItems(encoding, batch.objects))]

/**
 * A watch that its server ends at once, as one does that is being stopped, is given its second: its client then goes on from its version
 * instead of listing again.
 */
function writeWatch({ form, events, gvk, extra }: WatchReply): Writer {
  return async (write) => {
    const began = elapsed()
    let silent = true
    let definitions = extra
    for await (const group of events) {
      const frames = group.map((event) => {
        if (event.frame) return event.frame
        const frame = eventFrame(form.encoding, form.shape, gvk(), event, definitions)
        if (event.type !== 'BOOKMARK') definitions = undefined
        return frame
      })
      // What arrived together leaves in one write.
      if (lengthOf(frames) > 0) await write([joined(frames)])
      silent = false
    }
    if (silent) await sleep(Math.max(shortestWatchMs - (elapsed() - began), 0))
  }
}
