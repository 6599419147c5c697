import { joined } from '../../base/bytes.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { watchDecoder } from '../../api/codec/watch-decoder.ts'
import { isObjectEvent, versionOf, type WatchEvent } from '../../api/codec/watch.ts'
import { BrokenStream } from '../../http/exchange/chunks.ts'
import type { BytesReply, Exchange, WatchReply } from '../../http/exchange/exchange.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { collectionKey } from '../answers/keys.ts'
import type { CollectionKey, ObjectStore } from '../store/store.ts'
import { ReplayableBody } from './replayable-body.ts'
import type { RecorderHooks } from './recordable.ts'
import type { Encoding, Projection } from '../../api/kube/media-type.ts'

/** The representations in an answer's encoding that the client accepts, in order of preference. */
type Accepted = readonly [Representation, ...Representation[]]

/** How the events of a watch are recorded. */
interface Recording {
  readonly info: ResourceRequest
  readonly store: ObjectStore
  readonly hooks: RecorderHooks
  readonly exchange: Exchange
}

/**
 * A watch, decoded. A cacher's events are committed before they are passed on, those that arrived
 * together in one commit; others pass, as all do without `recording`. Where the upstream stream
 * breaks, the watch ends cleanly, and clients watch again from their last version.
 */
export function decodedWatch(
  reply: BytesReply,
  representations: Accepted,
  recording?: Recording,
): WatchReply {
  const replayable = new ReplayableBody(reply, recording?.hooks.onUnpacked ?? (() => undefined))
  replayable.stopKeeping()
  let [representation] = representations
  let cutter = watchDecoder(representation.encoding, representation.projection)
  /**
   * A client that accepts a conversion may be answered with whole objects, as only the events show.
   * A representation that it does not accept passes unrecorded.
   */
  const detect = async (): Promise<{ opening: readonly Uint8Array[]; isAccepted: boolean }> => {
    if (representations.every(({ projection }) => projection === 'object'))
      return { opening: [], isAccepted: true }
    const { encoding } = representation
    const opening = await replayable.prefix((bytes) => showsEventProjection(encoding, bytes))
    const projection = projectionOf(joined(opening))
    const answered = representations.find((each) => each.projection === projection)
    representation = answered ?? { ...representation, projection }
    cutter = watchDecoder(encoding, projection)
    return { opening, isAccepted: answered !== undefined }
  }
  const cut = (chunks: readonly Uint8Array[]): readonly WatchEvent[] =>
    chunks.flatMap((chunk) => cutter.push(chunk))
  const events = async function* (): AsyncGenerator<readonly WatchEvent[]> {
    try {
      const { opening, isAccepted } = await detect()
      const changes = recording && isAccepted ? changesOf(recording, representation) : undefined
      const begun = cut(opening)
      if (begun.length > 0) yield changes ? await changes.keep(begun) : begun
      for await (const group of replayable.chunks) {
        const each = cut(group)
        if (each.length > 0) yield changes ? await changes.keep(each) : each
      }
    } catch (error) {
      if (error instanceof BrokenStream) return
      if (error instanceof MalformedBody) recording?.hooks.onMalformed(error, recording.exchange)
      throw error
    } finally {
      await replayable.chunks.return(undefined)
    }
  }
  const { status, headers, from, explanation } = reply
  return {
    kind: 'watch',
    status,
    headers,
    from,
    ...(explanation && { explanation }),
    representation: () => representation,
    gvk: () => cutter.gvk,
    events: events(),
  }
}

function changesOf(
  { info, store, hooks, exchange }: Recording,
  representation: Representation,
): RecordedChanges {
  const { comparesEvents } = exchange
  const from = resourceVersion(info.query.get('resourceVersion') ?? undefined)
  return new RecordedChanges(
    {
      store,
      hooks,
      key: store.copyOf(collectionKey(exchange, info, representation)),
      tellsPrevious: () => comparesEvents?.() ?? false,
    },
    comparesEvents && from,
  )
}

interface EventRecorderParts {
  readonly key: CollectionKey
  readonly store: ObjectStore
  readonly hooks: RecorderHooks
  /** Whether a reader needs the previous state of each object. */
  readonly tellsPrevious: () => boolean
}

/**
 * Changes to a stored collection. A watch that starts after the stored version leaves a gap: it is
 * not recorded, as one without `from`. Of one that starts earlier the events up to the stored
 * version are skipped.
 */
class RecordedChanges {
  readonly #parts: EventRecorderParts
  #storedVersion: ResourceVersion | undefined

  constructor(parts: EventRecorderParts, from: ResourceVersion | undefined) {
    this.#parts = parts
    const kept = resourceVersion(parts.store.version(parts.key))
    const joins = from !== undefined && kept !== undefined && compareVersions(from, kept) <= 0
    this.#storedVersion = joins ? kept : undefined
  }

  /** Resolves to the same events, with the previous state of each object where due. */
  async keep(events: readonly WatchEvent[]): Promise<readonly WatchEvent[]> {
    const applied = events.filter((event) => this.#applies(event))
    const { store, key, hooks } = this.#parts
    const tellsPrevious = this.#parts.tellsPrevious()
    try {
      if (applied.length === 0) return events
      const options = { since: this.#storedVersion, previous: tellsPrevious }
      const previous = await store.apply(key, applied, options)
      hooks.onRecorded('watch')
      this.#storedVersion = versionOf(applied.at(-1)) ?? this.#storedVersion
      if (!tellsPrevious) return events
      return events.map((event) => withPrevious(event, previous[applied.indexOf(event)]))
    } catch (cause) {
      this.#storedVersion = undefined
      hooks.onStoreFailure(cause)
      return events
    }
  }

  /** A bookmark at the stored version confirms that it is still the newest. */
  #applies(event: WatchEvent): boolean {
    const version = versionOf(event)
    if (this.#storedVersion === undefined || version === undefined) return false
    const order = compareVersions(version, this.#storedVersion)
    return order > 0 || (order === 0 && event.type === 'BOOKMARK')
  }
}

function withPrevious(event: WatchEvent, previous: ApiObject | undefined): WatchEvent {
  if (previous === undefined || !isObjectEvent(event)) return event
  return { ...event, previous }
}

/** The first bytes of an object, a list or an event contain its kind. */
const openingBytes = 128

/** Whether so much of an answer determines its projection. */
export const showsProjection = (start: Buffer): boolean => start.byteLength >= openingBytes

/** The same for a watch, whose first event may be shorter, and the only one for a long time. */
const showsEventProjection = (encoding: Encoding, start: Buffer): boolean =>
  showsProjection(start) ||
  (encoding === 'json' ? closed.test(start.toString('latin1')) : isFrame(start))

/** A complete event, or object in it: its kind comes before the end. */
const closed = /\}\s*$/

/** A frame begins with its length in four bytes. */
const isFrame = (start: Buffer): boolean =>
  start.byteLength >= 4 && start.byteLength >= 4 + start.readUInt32BE(0)

/**
 * The projection of an answer, by its first bytes: a server that makes no tables or metadata
 * answers with whole objects. In either encoding the kind of a conversion comes at the very
 * beginning of an answer, and of each event of a watch.
 */
export function projectionOf(start: Buffer): Projection {
  const opening = start.subarray(0, openingBytes).toString('latin1')
  if (/"kind":\s*"Table"/.test(opening)) return 'table'
  return opening.includes('PartialObjectMetadata') ? 'metadata' : 'object'
}
