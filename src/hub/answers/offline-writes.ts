import { now } from '../../base/clock.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { jsonOfObject, withMembers, type MemberChange } from '../../api/codec/members.ts'
import { PathError } from '../../api/codec/element.ts'
import { objectBody, readObject, type EncodedObject } from '../../api/codec/object.ts'
import { reviewIn, type Review } from '../../api/codec/review.ts'
import { tokenIn, tokenSpec } from '../../api/codec/token-request.ts'
import type { BodyReply, Exchange, Reply } from '../../http/exchange/exchange.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { mediaType, encodingOf } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import {
  alreadyExists,
  badRequest,
  notFound,
  serviceUnavailable,
  StatusError,
  unsupportedMediaType,
} from '../../api/kube/status.ts'
import { claimsOf, claimTimeMs } from '../../api/kube/web-token.ts'
import { isReview, isTokenRequest, type ResourceRequest } from '../../api/request/request-info.ts'
import type { ObjectStore } from '../store/store.ts'
import { tokenKey } from './keys.ts'
import { newestRecord } from './newest-records.ts'
import type { NodeWrites } from './node-writes.ts'
import { answerHeaders, objectReply, withStaleness } from './replies.ts'
import { needsTheCloud, neverCached, storedObject } from './offline-reads.ts'
import type { ReviewAnswer } from './recorded-reviews.ts'
import { readPatch, statusChanges } from './status-patch.ts'
import { wholeRequestBody } from '../../http/exchange/request-body.ts'

/** Answers a write offline. There is no replay yet. */
type Answer = (
  exchange: Exchange,
  info: ResourceRequest,
  parts: OfflineWriteParts,
) => Promise<Reply>

export interface OfflineWriteParts {
  readonly store: ObjectStore
  readonly nodeName: string
  readonly writes: NodeWrites
  /** Answers a review; `undefined`: the answer is not known. */
  readonly review: (
    exchange: Exchange,
    info: ResourceRequest,
    review: Review,
  ) => ReviewAnswer | undefined
}

/**
 * By verb, resource and subresource: the writes without which a kubelet does not start or run
 * (registration, leases, status, events). All others are refused.
 */
const answers: Record<string, Answer> = {
  // A kubelet registers itself when it starts. After a 409 it goes on with a get.
  'create nodes': existing,
  'patch nodes/status': patchedStatus,
  'patch pods/status': patchedStatus,
  'create leases.coordination.k8s.io': heartbeat(201),
  'update leases.coordination.k8s.io': heartbeat(200),
  'create events': acceptedEvent,
  'create events.events.k8s.io': acceptedEvent,
  // After a 404 the event recorder creates the whole event instead, which can be accepted.
  'patch events': async (_exchange, info) => unknownEvent(info),
  'patch events.events.k8s.io': async (_exchange, info) => unknownEvent(info),
  // A kubelet creates its CSINode only after a 404, which it does not get offline. After a 409 it
  // goes on with a get.
  'create csinodes.storage.k8s.io': existing,
  // A kubelet exits if this is refused for long.
  'update csinodes.storage.k8s.io': async (exchange, info, { store, nodeName }) => {
    requireStored(info, store, nodeName)
    return echoed(exchange, await requestObject(exchange), 200)
  },
}

/** Answers a write, or throws 503 for one that only an API server can do. */
export async function localWrite(
  exchange: Exchange,
  info: ResourceRequest,
  parts: OfflineWriteParts,
): Promise<Reply> {
  if (isTokenRequest(info)) return cachedToken(exchange, info, parts)
  if (isReview(info)) return answeredReview(exchange, info, parts)
  const subresource = info.subresource === undefined ? '' : `/${info.subresource}`
  const answer = answers[`${info.verb} ${qualifiedResource(info.gvr)}${subresource}`]
  if (answer === undefined || exchange.credential !== 'node') {
    throw needsTheCloud()
  }
  return answer(exchange, info, parts)
}

/** Throws 503 unless a component of the node has read the object. */
function requireStored({ gvr }: ResourceRequest, store: ObjectStore, name: string): void {
  const record = newestRecord({ gvr, namespace: '', name }, { store, reach: 'node' })
  if (typeof record !== 'object') throw neverCached()
}

/** Throws 409 for an object that is stored. */
async function existing(
  exchange: Exchange,
  info: ResourceRequest,
  { store }: OfflineWriteParts,
): Promise<never> {
  const { name } = (await requestObject(exchange)).object
  requireStored(info, store, name)
  throw new StatusError(alreadyExists({ ...info.gvr, name }))
}

async function acceptedEvent(
  exchange: Exchange,
  { gvr, query }: ResourceRequest,
  { writes }: OfflineWriteParts,
): Promise<Reply> {
  const event = await requestObject(exchange)
  const reply = echoed(exchange, event, 201)
  if (!query.has('dryRun')) writes.keep(gvr, event.encoding, event)
  return reply
}

function unknownEvent(info: ResourceRequest): never {
  throw new StatusError(notFound({ ...info.gvr, name: info.name ?? '' }))
}

/**
 * Answers with the stored object as patched, at its stored version. What the node reads stays as
 * the cloud gave it, in gets, lists and watches alike, so that each patch applies to what its
 * writer has read; a kubelet repeats the statuses of its node and pods until the API server has
 * them.
 */
async function patchedStatus(
  exchange: Exchange,
  info: ResourceRequest,
  { store, writes }: OfflineWriteParts,
): Promise<Reply> {
  const patch = readPatch(exchange.headers.get('content-type'), await requestBody(exchange))
  const { representation, stored } = storedObject(exchange, info, store)
  if (representation.projection !== 'object') throw neverCached()
  const { encoding } = representation
  const { gvk, confirmedAt } = stored
  const target = { gvr: info.gvr, gvk, object: jsonOfObject(encoding, gvk, stored.object) }
  const object = withStatus({ encoding, ...stored }, statusChanges(target, patch), 'the patch')
  if (!info.query.has('dryRun')) writes.keepPatched(info.gvr, encoding, { gvk, object })
  const reply = objectReply(representation, { gvk, object })
  return { ...reply, headers: withStaleness(reply.headers, exchange, confirmedAt) }
}

/** Answers with the object that was sent; its resource version stays the one it was sent with. */
function echoed(
  { representations }: Exchange,
  { encoding, body }: RequestObject,
  status: number,
): BodyReply {
  if (!representations.some((representation) => representation.encoding === encoding)) {
    throw new StatusError(
      serviceUnavailable(
        'the cloud cannot be reached, and this representation cannot be answered without it',
      ),
    )
  }
  return { kind: 'body', from: 'cache', status, headers: answerHeaders(mediaType(encoding)), body }
}

/**
 * Accepts the heartbeat lease of this node. All other leases are refused: they elect leaders, or
 * belong to other nodes.
 */
function heartbeat(status: number): Answer {
  return async (exchange, info, { nodeName }) => {
    const lease = await requestObject(exchange)
    const name = info.name ?? lease.object.name
    if (info.namespace !== 'kube-node-lease' || name !== nodeName) throw neverCached()
    return echoed(exchange, lease, status)
  }
}

/**
 * Answers a token request with the last token that an API server issued to this caller for the same
 * request, byte for byte, until the token's `exp` claim. The answer's expirationTimestamp does not
 * count: it may be an hour where the token lasts a year (kubernetes pkg/serviceaccount/claims.go,
 * `warnafter`). Throws 503 where no token is stored.
 *
 * A node's clock may be behind by decades, so that an expired token is handed out. Its verifier has
 * its own clock, and without a token the pod would not start.
 */
async function cachedToken(
  exchange: Exchange,
  info: ResourceRequest,
  { store }: OfflineWriteParts,
): Promise<Reply> {
  const spec = tokenSpec(await requestObject(exchange))
  if (!spec) throw new StatusError(badRequest('the object provided is no TokenRequest'))
  for (const representation of exchange.representations) {
    if (representation.projection !== 'object') continue
    const found = store.get(tokenKey(exchange, info, representation, spec))
    if (found === undefined || found === 'absent') continue
    const { encoding } = representation
    const token = tokenIn({ encoding, ...found })
    if ((claimTimeMs(claimsOf(token)?.claims['exp']) ?? 0) <= now()) continue
    return {
      kind: 'body',
      from: 'cache',
      status: 201,
      headers: withStaleness(answerHeaders(mediaType(encoding)), exchange, found.confirmedAt),
      body: objectBody(encoding, found.gvk, found.object),
    }
  }
  throw neverCached()
}

/**
 * Answers an access review or a token review: the review as it was sent, with the recorded status
 * in place of its own. Throws 503 where no answer is recorded.
 */
async function answeredReview(
  exchange: Exchange,
  info: ResourceRequest,
  { review: answerTo }: OfflineWriteParts,
): Promise<Reply> {
  const sent = await requestObject(exchange)
  const review = reviewOf(sent)
  const answer = answerTo(exchange, info, review)
  if (!answer) throw neverCached()
  const { encoding, gvk } = sent
  const members = new Set([...Object.keys(review.status), ...Object.keys(answer.status)])
  const changes = Array.from(members, (member) => ({
    path: ['status', member] as const,
    value: answer.status[member],
  }))
  const object = withStatus(sent, changes, 'the status of the review')
  const reply = echoed(exchange, { ...sent, body: objectBody(encoding, gvk, object) }, 201)
  return { ...reply, headers: withStaleness(reply.headers, exchange, answer.confirmedAt) }
}

function withStatus(
  { encoding, gvk, object }: EncodedObject,
  changes: readonly MemberChange[],
  what: string,
): ApiObject {
  try {
    return withMembers(encoding, gvk, object, changes)
  } catch (cause) {
    if (!(cause instanceof PathError)) throw cause
    throw new StatusError(badRequest(`${what} does not fit the object`), { cause })
  }
}

function reviewOf(sent: RequestObject): Review {
  try {
    const review = reviewIn(sent)
    if (review) return review
  } catch (cause) {
    if (!(cause instanceof MalformedBody)) throw cause
  }
  throw new StatusError(badRequest('the object provided is no review'))
}

/** The largest body of a write that is answered offline: the API server's own limit. */
export const maxBodyBytes = 3 * 1024 * 1024

/** The object in the body of a request. */
interface RequestObject extends EncodedObject {
  readonly body: Buffer
}

/**
 * Reads the object in the body of a request. Throws the StatusError of an API server for others.
 */
async function requestObject(exchange: Exchange): Promise<RequestObject> {
  const encoding = encodingOf(exchange.headers.get('content-type') ?? 'application/json')
  if (encoding === undefined) {
    throw new StatusError(
      unsupportedMediaType(
        'the body of the request was in an unknown format - accepted media types include: application/json, application/vnd.kubernetes.protobuf',
      ),
    )
  }
  const body = await requestBody(exchange)
  try {
    return { encoding, body, ...readObject(encoding, 'object', body) }
  } catch (cause) {
    throw new StatusError(badRequest('the object provided is unrecognized'), { cause })
  }
}

/** The whole body of a request. Throws 413 where it is too large. */
async function requestBody({ body, content }: Exchange): Promise<Buffer> {
  if (content) return content
  return body ? wholeRequestBody(body, maxBodyBytes) : Buffer.alloc(0)
}
