import { asBuffer, joined } from '../../base/bytes.ts'
import { listDecoder } from '../../api/codec/list-decoder.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { readObject } from '../../api/codec/object.ts'
import { BrokenStream } from '../../http/exchange/chunks.ts'
import { acceptsGzip } from '../../http/exchange/headers.ts'
import { isGzip, withLength } from '../../http/exchange/unpacked.ts'
import type {
  BodyReply,
  Exchange,
  ObjectReply,
  Reply,
  UpstreamReply,
} from '../../http/exchange/exchange.ts'
import { encodingOf, type Encoding, type Projection } from '../../api/kube/media-type.ts'
import type { Representation, RepresentationKey } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { collectionKey, documentKey, objectKey } from '../answers/keys.ts'
import { putDocument } from '../store/document.ts'
import { StoreFailure, type ObjectStore } from '../store/store.ts'
import { isObjectNotFound } from './object-not-found.ts'
import { ReplayableBody } from './replayable-body.ts'
import { RecordedList } from './recorded-list.ts'
import { recordable, type Recordable, type RecorderHooks } from './recordable.ts'
import { cachedTokenOf } from './cached-token.ts'
import { reviewIn } from '../../api/codec/review.ts'
import type { RecordedReviews } from '../answers/recorded-reviews.ts'

/** The part of an answer to record: the events of watches are recorded by cachers alone. */
export type RecordingPlan = Exclude<Recordable, { readonly kind: 'watch' }> & {
  /** Of a consistent list: the versions that were stored before the request. */
  readonly stored?: ReadonlyMap<RepresentationKey, string | undefined>
}

interface ObjectsPlan extends Pick<RecordingPlan, 'stored'> {
  readonly info: ResourceRequest
}

/**
 * An answer broke off before any of it was passed on: the request may be retried, or answered from
 * the cache.
 */
export class BrokenAnswer extends Error {
  readonly code = 'BROKEN_ANSWER'
  constructor(cause: unknown) {
    super('the answer of an API server broke off', { cause })
  }
}

/**
 * Rethrows a failure before any of an answer was passed on: as `BrokenAnswer` where the answer
 * could not be read to its end.
 */
export function brokenAnswer(cause: unknown): never {
  const broken = [BrokenStream, MalformedBody, StoreFailure].some((kind) => cause instanceof kind)
  throw broken ? new BrokenAnswer(cause) : cause
}

interface RequestWithBody {
  readonly info: ResourceRequest
  readonly content: Buffer
}

interface EncodedBody {
  readonly encoding: Encoding
  readonly body: Buffer
}

/** A larger object or document is not recorded: API servers accept 3 MiB, etcd 1.5. */
const wholeBodyBytes = 16 * 1024 * 1024

/**
 * Records answers before they are passed on. It returns a recorded answer decoded (object, or
 * list), any other unchanged.
 */
export class Recorder {
  readonly hooks: RecorderHooks
  readonly #store: ObjectStore
  readonly #isRecorded: (exchange: Exchange) => boolean
  readonly #reviews: RecordedReviews

  /** `isRecorded`: which exchanges are recorded where possible. */
  constructor(
    store: ObjectStore,
    isRecorded: (exchange: Exchange) => boolean,
    hooks: RecorderHooks,
    reviews: RecordedReviews,
  ) {
    this.#store = store
    this.#reviews = reviews
    this.#isRecorded = isRecorded
    this.hooks = hooks
  }

  /** Whether the events of a watch are recorded where possible. */
  recordsWatch(exchange: Exchange): boolean {
    return this.#isRecorded(exchange) && recordable(exchange)?.kind === 'watch'
  }

  /** To be called before the exchange is forwarded. */
  plan(exchange: Exchange): RecordingPlan | undefined {
    const what = this.#isRecorded(exchange) ? recordable(exchange) : undefined
    if (!what || what.kind === 'watch') return undefined
    if (what.kind !== 'list' || !isConsistent(what.info)) return what
    const stored = exchange.representations.map(
      (each) => [each.key, this.#storedVersion(exchange, what.info, each)] as const,
    )
    return { ...what, stored: new Map(stored) }
  }

  #storedVersion(
    exchange: Exchange,
    info: ResourceRequest,
    of: Representation,
  ): string | undefined {
    return this.#store.version(this.#store.copyOf(collectionKey(exchange, info, of)))
  }

  /** Records an answer by its plan. Throws a `BrokenAnswer`. */
  async record(what: RecordingPlan, exchange: Exchange, reply: UpstreamReply): Promise<Reply> {
    if (reply.headers.get('content-encoding') !== undefined && !isGzip(reply.headers)) return reply
    if (reply.status === 404 && what.kind === 'object' && exchange.method === 'GET') {
      return this.#absence(exchange, what.info, reply)
    }
    if (what.kind === 'token' || what.kind === 'review') {
      return this.#answeredByBody(exchange, what, reply)
    }
    const isCreated = reply.status === 201 && (what.kind === 'object' || what.kind === 'event')
    if (reply.status !== 200 && !isCreated) return reply
    if (what.kind === 'document') return this.#document(exchange, reply)
    const encoding = encodingOf(reply.headers.get('content-type'))
    const isAccepted = exchange.representations.some((each) => each.encoding === encoding)
    if (encoding === undefined || !isAccepted) return reply
    switch (what.kind) {
      case 'event':
        return this.#event(exchange, what.info, reply, encoding)
      case 'object':
        return this.#object(exchange, what, reply, encoding)
      case 'list':
        return this.#list(exchange, what, reply, encoding)
    }
  }

  async #object(
    exchange: Exchange,
    { info }: ObjectsPlan,
    reply: UpstreamReply,
    encoding: Encoding,
  ): Promise<Reply> {
    const whole = await this.#whole(exchange, reply)
    if ('rest' in whole) return whole.rest
    const { body, asItCame } = whole
    const representation = answeredRepresentation(exchange, encoding, body)
    if (representation === undefined) return asItCame
    let read: Pick<ObjectReply, 'gvk' | 'object'>
    try {
      read = readObject(encoding, representation.projection, body)
    } catch (error) {
      if (!(error instanceof MalformedBody)) throw error
      this.hooks.onMalformed(error, exchange)
      return asItCame
    }
    const { name } = read.object
    // The name of a created object is in its body, and in the answer.
    const key = { ...objectKey(exchange, info, representation), name: info.name ?? name }
    await this.#write('object', this.#store.put(key, read.gvk, read.object))
    return { ...asItCame, kind: 'object', representation, ...read }
  }

  /** An event of the node is kept beside the store. */
  async #event(
    exchange: Exchange,
    { gvr }: ResourceRequest,
    reply: UpstreamReply,
    encoding: Encoding,
  ): Promise<Reply> {
    const whole = await this.#whole(exchange, reply)
    if ('rest' in whole) return whole.rest
    const { body, asItCame } = whole
    try {
      this.hooks.onEvent(gvr, encoding, readObject(encoding, 'object', body))
    } catch (error) {
      if (!(error instanceof MalformedBody)) throw error
      this.hooks.onMalformed(error, exchange)
    }
    return asItCame
  }

  /** Removes a deleted object in every representation. The answer itself is not stored. */
  async #absence(exchange: Exchange, info: ResourceRequest, reply: UpstreamReply): Promise<Reply> {
    const encoding = encodingOf(reply.headers.get('content-type'))
    if (encoding === undefined) return reply
    const whole = await this.#whole(exchange, reply)
    if ('rest' in whole) return whole.rest
    const { body, asItCame } = whole
    if (isObjectNotFound(encoding, body, info.name ?? '')) {
      // Collections have their own watch, which may not have seen the deletion yet.
      const keys = exchange.representations.map((representation) =>
        objectKey(exchange, info, representation),
      )
      const forgotten = await Promise.allSettled(keys.map((key) => this.#store.forget(key)))
      for (const each of forgotten) {
        if (each.status === 'rejected') this.hooks.onStoreFailure(each.reason)
      }
    }
    return asItCame
  }

  async #document(exchange: Exchange, reply: UpstreamReply): Promise<Reply> {
    const whole = await this.#whole(exchange, reply)
    if ('rest' in whole) return whole.rest
    const contentType = reply.headers.get('content-type') ?? ''
    const { body, asItCame } = whole
    const key = documentKey(exchange, contentType)
    if (key) await this.#write('document', putDocument(this.#store, key, contentType, body))
    return asItCame
  }

  /** Records a token or the answer to a review. */
  async #answeredByBody(
    exchange: Exchange,
    what: Extract<Recordable, { readonly content: Buffer }>,
    reply: UpstreamReply,
  ): Promise<Reply> {
    const encoding = encodingOf(reply.headers.get('content-type'))
    if (reply.status !== 201 || encoding === undefined) return reply
    const whole = await this.#whole(exchange, reply)
    if ('rest' in whole) return whole.rest
    let written: Promise<void> | undefined
    try {
      const answer = { encoding, body: whole.body }
      written =
        what.kind === 'token'
          ? this.#token(exchange, what, answer)
          : this.#review(exchange, what, answer)
    } catch (error) {
      if (!(error instanceof MalformedBody)) throw error
      this.hooks.onMalformed(error, exchange)
    }
    if (written) await this.#write(what.kind, written)
    return whole.asItCame
  }

  /** Throws `MalformedBody`, as `#review` does; `undefined` where there is nothing to record. */
  #token(
    exchange: Exchange,
    request: RequestWithBody,
    answer: EncodedBody,
  ): Promise<void> | undefined {
    const token = cachedTokenOf(exchange, request, answer)
    return token && this.#store.put(token.key, token.gvk, token.object)
  }

  #review(
    exchange: Exchange,
    { info, content }: RequestWithBody,
    { encoding, body }: EncodedBody,
  ): Promise<void> | undefined {
    const requestEncoding = encodingOf(exchange.headers.get('content-type') ?? 'application/json')
    if (requestEncoding === undefined) return undefined
    const review = reviewIn({
      encoding: requestEncoding,
      ...readObject(requestEncoding, 'object', content),
    })
    const answered = reviewIn({ encoding, ...readObject(encoding, 'object', body) })
    if (!review || review.kind !== answered?.kind) return undefined
    return this.#reviews.put(exchange, info, review, answered.status)
  }

  /**
   * The whole body, and the answer with it as the client accepts it; or, where it is too long, the
   * reply as it would have been. Throws a `BrokenAnswer`.
   */
  async #whole(
    exchange: Exchange,
    reply: UpstreamReply,
  ): Promise<{ body: Buffer; asItCame: BodyReply } | { rest: UpstreamReply }> {
    if (reply.kind === 'body' && !isGzip(reply.headers))
      return { body: asBuffer(reply.body), asItCame: reply }
    if (Number(reply.headers.get('content-length') ?? 0) > wholeBodyBytes) return { rest: reply }
    const replayable = new ReplayableBody(reply, this.hooks.onUnpacked)
    const body = await replayable.whole(wholeBodyBytes).catch(brokenAnswer)
    if (body === undefined) return { rest: replayable.replay() }
    const asItCame: BodyReply =
      replayable.isCompressed && !acceptsGzip(exchange.headers)
        ? { ...reply, kind: 'body', headers: withLength(reply.headers, body), body }
        : {
            ...reply,
            kind: 'body',
            body: replayable.isCompressed ? joined(replayable.keptBytes()) : body,
          }
    return { body, asItCame }
  }

  async #write(kind: Recordable['kind'], written: Promise<void>): Promise<void> {
    try {
      await written
      this.hooks.onRecorded(kind)
    } catch (cause) {
      this.hooks.onStoreFailure(cause)
    }
  }

  async #list(
    exchange: Exchange,
    { info, stored }: ObjectsPlan,
    reply: UpstreamReply,
    encoding: Encoding,
  ): Promise<Reply> {
    const replayable = new ReplayableBody(reply, this.hooks.onUnpacked)
    try {
      const opening = await replayable.prefix(showsProjection)
      const representation = answeredRepresentation(exchange, encoding, joined(opening))
      if (representation === undefined) return replayable.replay()
      const cutter = listDecoder(encoding, representation.projection)
      const pieces = opening.map((chunk) => cutter.push(chunk))
      for (;;) {
        const head = pieces.find((piece) => piece.head !== undefined)?.head
        if (head) {
          const list = new RecordedList({
            head,
            cutter,
            started: pieces.flatMap(({ batch }) => (batch ? [batch] : [])),
            replayable,
            key: collectionKey(exchange, info, representation),
            storedBefore: stored?.get(representation.key),
            store: this.#store,
            hooks: this.hooks,
            exchange,
          })
          const passedOn = replayable.isCompressed && acceptsGzip(exchange.headers)
          return {
            ...reply,
            kind: 'list',
            representation,
            list,
            ...(passedOn && { upstreamBody: list.asItCame() }),
          }
        }
        const next = await replayable.chunks.next()
        if (next.done === true) throw new MalformedBody('a list ended before its objects began')
        pieces.push(...next.value.map((chunk) => cutter.push(chunk)))
      }
    } catch (error) {
      if (!(error instanceof MalformedBody)) return brokenAnswer(error)
      this.hooks.onMalformed(error, exchange)
      return replayable.replay()
    }
  }
}

/** A list as of now: it names no version. */
const isConsistent = ({ query }: ResourceRequest): boolean => !query.get('resourceVersion')

/** The client's accepted representation that the answer has. */
function answeredRepresentation(
  exchange: Exchange,
  encoding: Encoding,
  start: Buffer,
): Representation | undefined {
  const projection = projectionOf(start)
  return exchange.representations.find(
    (representation) =>
      representation.encoding === encoding && representation.projection === projection,
  )
}

/** The first bytes of an object or a list contain its kind. */
const openingBytes = 128

/** Whether so much of an answer determines its projection. */
const showsProjection = (start: Buffer): boolean => start.byteLength >= openingBytes

/**
 * The projection of an answer, by its first bytes: a server that makes no tables or metadata
 * answers with whole objects. In either encoding the kind of a conversion comes at the very
 * beginning of an answer.
 */
function projectionOf(start: Buffer): Projection {
  const opening = start.subarray(0, openingBytes).toString('latin1')
  if (/"kind":\s*"Table"/.test(opening)) return 'table'
  return opening.includes('PartialObjectMetadata') ? 'metadata' : 'object'
}
