import { joined } from '../../base/bytes.ts'
import { ReplayableBody } from '../cache/replayable-body.ts'
import { brokenAnswer } from '../cache/recorder.ts'
import { listDecoder } from '../../api/codec/list-decoder.ts'
import { objectKind } from '../../api/codec/list.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { readObject } from '../../api/codec/object.ts'
import { isPartial } from '../../api/codec/partial.ts'
import { acceptsGzip } from '../../http/exchange/accept-encoding.ts'
import type {
  BodyReply,
  BytesReply,
  Exchange,
  ListReply,
  ObjectReply,
} from '../../http/exchange/exchange.ts'
import { isGzip, withLength } from '../../http/exchange/unpacked.ts'
import { encodingOf } from '../../api/kube/media-type.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ResourceRequest, ResourceVerb } from '../../api/request/request-info.ts'

/** What is longer passes as it came: API servers take objects of 3 MiB, etcd of 1.5. */
const mostBytes = 16 * 1024 * 1024

/** Verbs whose answers show one object, or several. */
const verbs: ReadonlySet<ResourceVerb> = new Set<ResourceVerb>([
  'get',
  'list',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
])

const ofSeveral: ReadonlySet<string> = new Set<ResourceVerb>(['list', 'deletecollection'])

/** Subresources whose answers show the object itself. */
const ofObject: ReadonlySet<string | undefined> = new Set([
  undefined,
  'status',
  'resize',
  'ephemeralcontainers',
])

/** Whether the answer to a request may show objects that nobody has read on their way. */
export const mayContainObjects = ({ verb, subresource }: ResourceRequest): boolean =>
  verbs.has(verb) && ofObject.has(subresource)

/**
 * The object, or the list of them, in an answer that was not recorded, as those to most writes are
 * not, nor what is indented for people or asked for in another's name; the answer as it came where
 * there is none in it. Throws a `BrokenAnswer`.
 */
export async function decodeObjects(
  reply: BytesReply,
  exchange: Exchange,
): Promise<ObjectReply | ListReply | BodyReply | BytesReply> {
  const { headers, status } = reply
  const isPlain = headers.get('content-encoding') === undefined
  const encoding = encodingOf(headers.get('content-type'))
  const representation = exchange.representations.find(
    (each) => each.encoding === encoding && each.projection === 'object',
  )
  if ((status !== 200 && status !== 201) || !representation || !(isPlain || isGzip(headers)))
    return reply
  if (Number(headers.get('content-length') ?? 0) > mostBytes) return reply
  const replayable = new ReplayableBody(reply, () => undefined)
  const body = await replayable.whole(mostBytes).catch(brokenAnswer)
  if (body === undefined) return replayable.replay()
  const asItCame: BodyReply =
    !isPlain && acceptsGzip(exchange.headers)
      ? { ...reply, kind: 'body', body: joined(replayable.keptBytes()) }
      : { ...reply, kind: 'body', headers: isPlain ? headers : withLength(headers, body), body }
  try {
    if (ofSeveral.has(exchange.info.verb)) {
      return listIn(body, representation, asItCame) ?? asItCame
    }
    const read = readObject(representation.encoding, representation.projection, body)
    // A Status says what became of the object.
    if (isPartial(read.gvk) || read.gvk.kind === 'Status') return asItCame
    return { ...asItCame, kind: 'object', representation, ...read }
  } catch (error) {
    if (!(error instanceof MalformedBody)) throw error
    return asItCame
  }
}

/**
 * To be gone through as often as one likes; `undefined` where it is no list of whole objects.
 * Throws `MalformedBody`.
 */
function listIn(
  body: Buffer,
  representation: Representation,
  { status, headers, from }: BodyReply,
): ListReply | undefined {
  const cutter = listDecoder(representation.encoding, representation.projection)
  const { head, batch } = cutter.push(body)
  const end = cutter.end()
  // A Status tells in the place of the objects what became of them.
  if (!head?.gvk.kind.endsWith('List') || isPartial(objectKind(head.gvk))) return undefined
  const { gvk, bytes } = head
  // All of it is here: it may be gone through again.
  const batches = {
    async *[Symbol.asyncIterator]() {
      if (batch) yield batch
    },
  }
  const list = { gvk, head: bytes, batches, end: () => Promise.resolve(end) }
  return { kind: 'list', status, headers, from, representation, list }
}
