import { joined } from '../base/bytes.ts'
import { Arriving } from '../cache/arriving.ts'
import { BrokenAnswer } from '../cache/recorder.ts'
import { MalformedBody } from '../codec/malformed-body.ts'
import { readObject } from '../codec/object.ts'
import { isPartial } from '../codec/partial.ts'
import { takesGzip } from '../exchange/accept-encoding.ts'
import type { BodyReply, BytesReply, Exchange, ObjectReply } from '../exchange/exchange.ts'
import { isGzip, withLength } from '../exchange/unpacked.ts'
import { encodingOf } from '../kube/media-type.ts'
import type { ResourceRequest, ResourceVerb } from '../request/request-info.ts'

/** What is longer passes as it came: API servers take objects of 3 MiB, etcd of 1.5. */
const mostBytes = 16 * 1024 * 1024

/** Verbs whose answers show one object; a list that deletes shows many, which nobody reads. */
const verbs: ReadonlySet<ResourceVerb> = new Set<ResourceVerb>([
  'get',
  'create',
  'update',
  'patch',
  'delete',
])

/** Subresources whose answers show the object itself. */
const ofObject: ReadonlySet<string | undefined> = new Set([
  undefined,
  'status',
  'resize',
  'ephemeralcontainers',
])

/** Whether the answer to a request may be an object that nobody has read on its way. */
export const mayShowObject = ({ verb, subresource }: ResourceRequest): boolean =>
  verbs.has(verb) && ofObject.has(subresource)

/**
 * The object in an answer that was not recorded, as those to most writes are not; the answer as it came where there is none in it. Throws a
 * `BrokenAnswer`.
 */
export async function unreadObject(
  reply: BytesReply,
  exchange: Exchange,
): Promise<ObjectReply | BodyReply | BytesReply> {
  const { headers, status } = reply
  const isPlain = headers.get('content-encoding') === undefined
  const encoding = encodingOf(headers.get('content-type'))
  const form = exchange.forms.find((each) => each.encoding === encoding && each.shape === 'object')
  if ((status !== 200 && status !== 201) || !form || !(isPlain || isGzip(headers))) return reply
  if (Number(headers.get('content-length') ?? 0) > mostBytes) return reply
  const arriving = new Arriving(reply, () => undefined)
  const body = await arriving.whole(mostBytes).catch((cause: unknown) => {
    throw new BrokenAnswer(cause)
  })
  if (body === undefined) return arriving.replay()
  const asItCame: BodyReply =
    !isPlain && takesGzip(exchange.headers)
      ? { ...reply, kind: 'body', body: joined(arriving.seen()) }
      : { ...reply, kind: 'body', headers: isPlain ? headers : withLength(headers, body), body }
  try {
    const read = readObject(form.encoding, form.shape, body)
    // A Status says what became of the object.
    if (isPartial(read.gvk) || read.gvk.kind === 'Status') return asItCame
    return { ...asItCame, kind: 'object', form, ...read }
  } catch (error) {
    if (!(error instanceof MalformedBody)) throw error
    return asItCame
  }
}
