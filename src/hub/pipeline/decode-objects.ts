import { asBuffer } from '../../base/bytes.ts'
import { wholeReply } from '../cache/replayable-body.ts'
import { brokenAnswer } from '../cache/recorder.ts'
import { listDecoder } from '../../api/codec/list-decoder.ts'
import { objectKind } from '../../api/codec/list.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { readObject } from '../../api/codec/object.ts'
import { isPartial } from '../../api/codec/partial.ts'
import { watchDecoder } from '../../api/codec/watch-decoder.ts'
import { showing } from '../filter/filter.ts'
import { bodyOf, Chunks } from '../../http/exchange/chunks.ts'
import type {
  BodyReply,
  BytesReply,
  Exchange,
  Handler,
  ListReply,
  ObjectReply,
  UpstreamReply,
  WatchReply,
} from '../../http/exchange/exchange.ts'
import { inflated, isReadable, type OnUnpacked } from '../../http/exchange/unpacked.ts'
import { encodingOf } from '../../api/kube/media-type.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ResourceRequest, ResourceVerb } from '../../api/request/request-info.ts'

/** A longer answer passes unchanged: API servers accept objects of 3 MiB, etcd of 1.5. */
const mostBytes = 16 * 1024 * 1024

const ofSeveral: ReadonlySet<string> = new Set<ResourceVerb>(['list', 'deletecollection'])

/** Subresources whose answers contain the object itself. */
const ofObject: ReadonlySet<string | undefined> = new Set([
  undefined,
  'status',
  'resize',
  'ephemeralcontainers',
])

/** Whether the answer to a request may contain objects that the recorder has not decoded. */
export const mayContainObjects = ({ verb, subresource }: ResourceRequest): boolean =>
  verb !== 'watch' && showing.includes(verb) && ofObject.has(subresource)

/**
 * Decodes the object or the list in an answer that was not recorded: an answer to most writes, an
 * indented one, or one to an impersonated request. Returns the answer unchanged where it contains
 * none. Throws a `BrokenAnswer`.
 */
export async function decodeObjects(
  unread: UpstreamReply,
  exchange: Exchange,
): Promise<ObjectReply | ListReply | UpstreamReply> {
  const { headers, status } = unread
  const encoding = encodingOf(headers.get('content-type'))
  const representation = exchange.representations.find(
    (each) => each.encoding === encoding && each.projection === 'object',
  )
  if ((status !== 200 && status !== 201) || !representation || !isReadable(headers)) return unread
  const whole = wholeReply(unread, exchange, mostBytes, () => undefined)
  const asItCame = await (whole instanceof Promise ? whole.catch(brokenAnswer) : whole)
  if (asItCame.kind !== 'body') return asItCame
  const body = asBuffer(asItCame.body)
  try {
    if (ofSeveral.has(exchange.info.verb)) {
      return listIn(body, representation, asItCame) ?? asItCame
    }
    const read = readObject(representation.encoding, representation.projection, body)
    // A Status reports the result, and contains no object.
    if (isPartial(read.gvk) || read.gvk.kind === 'Status') return asItCame
    return { ...asItCame, kind: 'object', representation, ...read }
  } catch (error) {
    if (!(error instanceof MalformedBody)) throw error
    return asItCame
  }
}

/**
 * Its batches can be read any number of times; `undefined` where it is no list of whole objects.
 * Throws `MalformedBody`.
 */
function listIn(
  body: Buffer,
  representation: Representation,
  { body: _cut, ...reply }: BodyReply,
): ListReply | undefined {
  const cutter = listDecoder(representation.encoding, representation.projection)
  const { head, batch } = cutter.push([body])
  const end = cutter.end()
  // A Status reports the result in place of the objects.
  if (!head?.gvk.kind.endsWith('List') || isPartial(objectKind(head.gvk))) return undefined
  const { gvk, bytes } = head
  // The body is complete, and can be read again.
  const batches = {
    async *[Symbol.asyncIterator]() {
      if (batch) yield batch
    },
  }
  const list = { gvk, head: bytes, batches, end: () => Promise.resolve(end) }
  return { ...reply, kind: 'list', representation, list }
}

/** Its watches, decoded where they come as bytes. */
export const withDecodedWatches =
  (next: Handler<Exchange>, onUnpacked?: OnUnpacked): Handler<Exchange> =>
  async (exchange) => {
    const { info, representations } = exchange
    const reply = await next(exchange)
    const isBytes = info.isResource && info.verb === 'watch' && reply.kind === 'bytes'
    return isBytes ? decodeWatch(reply, representations, onUnpacked) : reply
  }

/**
 * Decodes the events of a watch, of whole objects or metadata, in the first representation that is
 * `accepted` in the encoding of the answer; returns any other answer unchanged. Its events lack the
 * previous states, and its collection has no snapshot. Where the upstream stream breaks, the watch
 * ends cleanly, and clients watch again from their last version.
 */
export function decodeWatch(
  unread: BytesReply,
  accepted: readonly Representation[],
  onUnpacked: OnUnpacked = () => undefined,
): WatchReply | BytesReply {
  const { status, from, explanation } = unread
  const encoding = encodingOf(unread.headers.get('content-type'))
  const representation = accepted.find((each) => each.encoding === encoding)
  const isRead =
    status === 200 && isReadable(unread.headers) && representation?.projection !== 'table'
  if (!representation || !isRead) return unread
  const reply = inflated(unread, {}, onUnpacked)
  const cutter = watchDecoder(representation.encoding, representation.projection)
  return {
    kind: 'watch',
    status,
    headers: reply.headers,
    from,
    ...(explanation && { explanation }),
    representation: () => representation,
    gvk: () => cutter.gvk,
    events: new Chunks(bodyOf(reply)).decoded(cutter),
  }
}
