import { asBuffer } from '../../base/bytes.ts'
import { cursorOf } from '../../api/codec/cursor.ts'
import { listDecoder } from '../../api/codec/list-decoder.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { checkBody, openObject, readObject } from '../../api/codec/object.ts'
import { BrokenStream } from '../../http/exchange/chunks.ts'
import { inflated, isReadable } from '../../http/exchange/unpacked.ts'
import type {
  BodyReply,
  Exchange,
  ObjectReply,
  Reply,
  UpstreamReply,
} from '../../http/exchange/exchange.ts'
import { encodingOf, type Encoding, type Projection } from '../../api/kube/media-type.ts'
import { newestVersion } from '../../api/kube/resource-version.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { collectionKey, documentKey, objectKey, tableKey } from '../answers/keys.ts'
import { putDocument } from '../store/document.ts'
import { StoreFailure, type ObjectStore } from '../store/store.ts'
import { isObjectNotFound } from './object-not-found.ts'
import { ReplayableBody, wholeReply } from './replayable-body.ts'
import { RecordedList } from './recorded-list.ts'
import { recordable, type Recordable, type RecorderHooks } from './recordable.ts'
import { cachedTokenOf } from './cached-token.ts'
import { reviewIn } from '../../api/codec/review.ts'
import type { RecordedReviews } from '../answers/recorded-reviews.ts'

/** The part of an answer to record: the events of watches are recorded by cachers alone. */
export type RecordingPlan = Exclude<Recordable, { readonly kind: 'watch' }> & {
  /** Of a consistent list: the newest version that was stored before, in any representation. */
  readonly storedBefore?: string | undefined
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

type RequestWithBody = Extract<Recordable, { readonly content: Buffer }>

interface WholeAnswer {
  readonly body: Buffer
  readonly asItCame: BodyReply
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
    const keys = exchange.representations.map((each) => collectionKey(exchange, what.info, each))
    const stored = keys.map((key) => this.#store.version(this.#store.copyOf(key)))
    return { ...what, storedBefore: newestVersion(stored) }
  }

  /**
   * Records an answer by its plan. Throws a `BrokenAnswer`. A promise only where there is something
   * to wait for.
   */
  record(what: RecordingPlan, exchange: Exchange, reply: UpstreamReply): Reply | Promise<Reply> {
    const { headers, status } = reply
    if (!isReadable(headers)) return reply
    const encoding = encodingOf(headers.get('content-type'))
    if (what.kind === 'document') {
      if (status !== 200) return reply
      return this.#whole(exchange, reply, (whole) => this.#document(exchange, whole))
    }
    if (encoding === undefined) return reply
    if (status === 404 && what.kind === 'object' && exchange.method === 'GET')
      return this.#whole(exchange, reply, (whole) =>
        this.#absence(exchange, what.info, encoding, whole),
      )
    if (what.kind === 'token' || what.kind === 'review') {
      if (status !== 201) return reply
      return this.#whole(exchange, reply, (whole) =>
        this.#answeredByBody(exchange, what, encoding, whole),
      )
    }
    const isCreated = status === 201 && what.kind !== 'list'
    if (status !== 200 && !isCreated) return reply
    if (!exchange.representations.some((each) => each.encoding === encoding)) return reply
    if (what.kind === 'list') return this.#list(exchange, what, reply, encoding)
    return this.#whole(exchange, reply, (whole) =>
      what.kind === 'event'
        ? this.#event(exchange, what.info, encoding, whole)
        : this.#object(exchange, what.info, encoding, whole),
    )
  }

  #object(
    exchange: Exchange,
    info: ResourceRequest,
    encoding: Encoding,
    { body, asItCame }: WholeAnswer,
  ): Reply | Promise<Reply> {
    const representation = answeredRepresentation(exchange, encoding, body)
    if (representation === undefined) return asItCame
    const { projection } = representation
    if (projection === 'table')
      return this.#table(exchange, info, representation, { body, asItCame })
    const read = this.#reading(exchange, () => openObject(encoding, projection, body))
    if (!read) return asItCame
    // The name of a created object is in its body, and in the answer.
    const name = info.name ?? read.object.name
    const key = { ...objectKey(exchange, info, representation), name }
    const reply: ObjectReply = { ...asItCame, kind: 'object', representation, ...read }
    // What is stored was scanned when it was stored.
    if (this.#store.holds(key, read.object)) {
      this.hooks.countOf('object').amount++
      return reply
    }
    const isWhole = this.#reading(exchange, () => {
      checkBody(encoding, body)
      return true
    })
    if (!isWhole) return asItCame
    return this.#write('object', this.#store.put(key, read.gvk, read.object)).then(() => reply)
  }

  /** Records a Table as it came, unless it has a further page. */
  async #table(
    exchange: Exchange,
    info: ResourceRequest,
    representation: Representation,
    { body, asItCame }: WholeAnswer,
  ): Promise<Reply> {
    const key = tableKey(exchange, info, representation)
    const isWhole = this.#reading(exchange, () => {
      const { gvk, object } = readObject('json', 'metadata', body)
      return !cursorOf('json', gvk, object).value(['metadata', 'continue'])
    })
    const contentType = asItCame.headers.get('content-type') ?? ''
    if (key && isWhole)
      await this.#write('document', putDocument(this.#store, key, contentType, body))
    return asItCame
  }

  /** What `read` finds in a body; `undefined` where that is malformed. */
  #reading<T>(exchange: Exchange, read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof MalformedBody)) throw error
      this.hooks.onMalformed(error, exchange)
      return undefined
    }
  }

  /** An event of the node is kept beside the store. */
  #event(
    exchange: Exchange,
    { gvr }: ResourceRequest,
    encoding: Encoding,
    { body, asItCame }: WholeAnswer,
  ): Reply {
    this.#reading(exchange, () =>
      this.hooks.onEvent(gvr, encoding, readObject(encoding, 'object', body)),
    )
    return asItCame
  }

  /** Removes a deleted object in what its client accepts. The answer itself is not stored. */
  async #absence(
    exchange: Exchange,
    info: ResourceRequest,
    encoding: Encoding,
    { body, asItCame }: WholeAnswer,
  ): Promise<Reply> {
    if (isObjectNotFound(encoding, body, info.name ?? '')) {
      // Collections have their own watch, which may not have seen the deletion yet.
      const keys = exchange.representations.flatMap(
        (each) => (each.projection === 'table' ? tableKey : objectKey)(exchange, info, each) ?? [],
      )
      const forgotten = await Promise.allSettled(keys.map((key) => this.#store.forget(key)))
      for (const each of forgotten) {
        if (each.status === 'rejected') this.hooks.onStoreFailure(each.reason)
      }
    }
    return asItCame
  }

  async #document(exchange: Exchange, { body, asItCame }: WholeAnswer): Promise<Reply> {
    const contentType = asItCame.headers.get('content-type') ?? ''
    const key = documentKey(exchange, contentType)
    if (key) await this.#write('document', putDocument(this.#store, key, contentType, body))
    return asItCame
  }

  /** Records a token or the answer to a review. */
  async #answeredByBody(
    exchange: Exchange,
    what: RequestWithBody,
    encoding: Encoding,
    { body, asItCame }: WholeAnswer,
  ): Promise<Reply> {
    const answer = { encoding, body }
    const written = this.#reading(exchange, () =>
      what.kind === 'token'
        ? this.#token(exchange, what, answer)
        : this.#review(exchange, what, answer),
    )
    if (written) await this.#write(what.kind, written)
    return asItCame
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
   * Gives `keep` the whole body, and the answer with it; the reply where it is too long. Throws a
   * `BrokenAnswer`.
   */
  #whole(
    exchange: Exchange,
    reply: UpstreamReply,
    keep: (whole: WholeAnswer) => Reply | Promise<Reply>,
  ): Reply | Promise<Reply> {
    const whole = wholeReply(reply, exchange, wholeBodyBytes, this.hooks.onUnpacked)
    const kept = (asItCame: UpstreamReply): Reply | Promise<Reply> =>
      asItCame.kind === 'body' ? keep({ body: asBuffer(asItCame.body), asItCame }) : asItCame
    return whole instanceof Promise ? whole.then(kept, brokenAnswer) : kept(whole)
  }

  #write(kind: Recordable['kind'], written: Promise<void>): Promise<void> {
    return written.then(
      () => void this.hooks.countOf(kind).amount++,
      (cause: unknown) => this.hooks.onStoreFailure(cause),
    )
  }

  async #list(
    exchange: Exchange,
    { info, storedBefore }: RecordingPlan & { readonly info: ResourceRequest },
    unread: UpstreamReply,
    encoding: Encoding,
  ): Promise<Reply> {
    // What is read here goes to the client as it is read: a node's own network carries it all.
    const reply = inflated(unread, exchange, this.hooks.onUnpacked)
    const replayable = new ReplayableBody(reply)
    try {
      const opening = await replayable.prefix(showsProjection)
      const representation = answeredRepresentation(exchange, encoding, opening)
      if (representation === undefined) return replayable.replay()
      if (representation.projection === 'table')
        return this.#whole(exchange, replayable.replay(), (whole) =>
          this.#table(exchange, info, representation, whole),
        )
      const cutter = listDecoder(encoding, representation.projection)
      const pieces = [cutter.push([opening])]
      for (;;) {
        const head = pieces.find((piece) => piece.head !== undefined)?.head
        if (head) {
          const list = new RecordedList({
            head,
            cutter,
            started: pieces.flatMap(({ batch }) => (batch ? [batch] : [])),
            replayable,
            key: collectionKey(exchange, info, representation),
            storedBefore,
            store: this.#store,
            hooks: this.hooks,
            exchange,
          })
          return { ...reply, kind: 'list', representation, list }
        }
        const next = await replayable.chunks.next()
        if (next.done === true) throw new MalformedBody('a list ended before its objects began')
        pieces.push(cutter.push(next.value))
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
 * answers with whole objects. In either encoding the type of a conversion comes at the very
 * beginning of an answer. Custom resources may be of a kind `Table`, too.
 */
function projectionOf(start: Buffer): Projection {
  const opening = start.subarray(0, openingBytes).toString('latin1')
  if (!opening.includes('meta.k8s.io/')) return 'object'
  if (/"kind":\s*"Table"/.test(opening)) return 'table'
  return opening.includes('PartialObjectMetadata') ? 'metadata' : 'object'
}
