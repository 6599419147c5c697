import { joined } from '../../base/bytes.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { watchDecoder, type WatchDecoder } from '../../api/codec/watch-decoder.ts'
import { isObjectEvent, versionOf, type WatchEvent } from '../../api/codec/watch.ts'
import { BrokenStream } from '../../http/exchange/chunks.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { GVK } from '../../api/kube/gvk.ts'
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
import type { ReplayableBody } from './replayable-body.ts'
import type { RecorderHooks } from './recorder-hooks.ts'
import { projectionOf, showsEventProjection } from './projection.ts'

interface RecordedWatchParts {
  readonly replayable: ReplayableBody
  /**
   * The representations in the answer's encoding that the client accepts, in order of preference.
   */
  readonly representations: readonly [Representation, ...Representation[]]
  readonly info: ResourceRequest
  readonly store: ObjectStore
  readonly hooks: RecorderHooks
  readonly exchange: Exchange
}

/**
 * A decoded watch. A cacher's events are committed before they are passed on, those that arrived
 * together in one commit; a client's own pass. Where the upstream stream breaks, the watch ends
 * cleanly, and clients watch again from their last version.
 */
export class RecordedWatch {
  readonly events: AsyncGenerator<readonly WatchEvent[]>
  readonly #parts: RecordedWatchParts
  #representation: Representation
  #cutter: WatchDecoder
  #isWanted = true

  constructor(parts: RecordedWatchParts) {
    this.#parts = parts
    const [wanted] = parts.representations
    this.#representation = wanted
    this.#cutter = watchDecoder(wanted.encoding, wanted.projection)
    this.events = this.#recorded()
  }

  /** The representation of the answer; before the first event, the client's preferred one. */
  get representation(): Representation {
    return this.#representation
  }

  get gvk(): GVK {
    return this.#cutter.gvk
  }

  async *#recorded(): AsyncGenerator<readonly WatchEvent[]> {
    const { replayable, representations, hooks, exchange } = this.#parts
    try {
      const opening = representations.some(({ projection }) => projection !== 'object')
        ? await this.#detectRepresentation()
        : []
      const recorder = this.#eventRecorder()
      const keep = async (events: readonly WatchEvent[]): Promise<readonly WatchEvent[]> =>
        recorder ? recorder.keep(events) : events
      const begun = this.#cut(opening)
      if (begun.length > 0) yield await keep(begun)
      for await (const group of replayable.chunks) {
        const events = this.#cut(group)
        if (events.length > 0) yield await keep(events)
      }
    } catch (error) {
      if (error instanceof BrokenStream) return
      if (error instanceof MalformedBody) hooks.onMalformed(error, exchange)
      throw error
    } finally {
      await replayable.chunks.return(undefined)
    }
  }

  /**
   * A client that accepts a conversion may be answered with whole objects, as only the events show.
   * A representation that it does not accept passes unrecorded.
   */
  async #detectRepresentation(): Promise<readonly Uint8Array[]> {
    const { replayable, representations } = this.#parts
    const { encoding } = this.#representation
    const opening = await replayable.prefix((bytes) => showsEventProjection(encoding, bytes))
    const projection = projectionOf(joined(opening))
    const answered = representations.find(
      (representation) => representation.projection === projection,
    )
    this.#representation = answered ?? { ...this.#representation, projection }
    this.#isWanted = answered !== undefined
    this.#cutter = watchDecoder(encoding, projection)
    return opening
  }

  #cut(chunks: readonly Uint8Array[]): readonly WatchEvent[] {
    return chunks.flatMap((chunk) => this.#cutter.push(chunk))
  }

  #eventRecorder(): RecordedChanges | undefined {
    if (!this.#isWanted) return undefined
    const { info, store, hooks, exchange } = this.#parts
    const { comparesEvents } = exchange
    const from = resourceVersion(info.query.get('resourceVersion') ?? undefined)
    return new RecordedChanges(
      {
        store,
        hooks,
        key: store.copyOf(collectionKey(exchange, info, this.#representation)),
        tellsPrevious: () => comparesEvents?.() ?? false,
      },
      comparesEvents && from,
    )
  }
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
