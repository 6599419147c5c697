import { joined } from '../../base/bytes.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { watchDecoder, type WatchDecoder } from '../../api/codec/watch-decoder.ts'
import { isObjectEvent, versionAfter, versionOf, type WatchEvent } from '../../api/codec/watch.ts'
import { BrokenStream } from '../../http/exchange/chunks.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import {
  compareVersions,
  isNewer,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import type { Representation } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { collectionKey } from '../answers/keys.ts'
import { StoreFailure, type CollectionKey, type ObjectStore } from '../store/store.ts'
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

  /** As in a `WatchReply`. */
  get extra(): string {
    return this.#cutter.extra
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
        key: collectionKey(exchange, info, this.#representation),
        extra: () => this.extra,
        tellsPrevious: () => comparesEvents?.() ?? false,
      },
      comparesEvents && from,
    )
  }
}

interface EventRecorderParts {
  readonly key: CollectionKey
  /** The columns of a Table, once an event has shown them. */
  readonly extra: () => string
  readonly store: ObjectStore
  readonly hooks: RecorderHooks
  /** Whether a reader needs the previous state of each object. */
  readonly tellsPrevious: () => boolean
}

/**
 * Changes to a stored collection. A watch that starts after the stored version leaves a gap: it is
 * not recorded, as one without `from`. Of one that starts earlier the events up to the stored
 * version are skipped. Rows of a Table with other columns than the stored ones, as from an API
 * server of another version, are not recorded either. Of events that are not recorded, a deletion
 * still takes what a get has recorded of the object before.
 */
class RecordedChanges {
  readonly #parts: EventRecorderParts
  #storedVersion: ResourceVersion | undefined
  /** The newest version that was stored while it was open, whether it is recorded or not. */
  #newestStored: ResourceVersion | undefined
  /** The version that its events have reached. */
  #at: ResourceVersion | undefined
  /** The columns that are those of the stored Table. */
  #extra = ''

  constructor(parts: EventRecorderParts, from: ResourceVersion | undefined) {
    this.#parts = parts
    this.#at = from
    const kept = resourceVersion(parts.store.version(parts.key))
    const joins = from !== undefined && kept !== undefined && compareVersions(from, kept) <= 0
    this.#storedVersion = joins ? kept : undefined
    this.#newestStored = kept
  }

  /** Resolves to the same events, with the previous state of each object where due. */
  async keep(events: readonly WatchEvent[]): Promise<readonly WatchEvent[]> {
    const since = this.#at
    this.#at = versionAfter(events) ?? since
    const applied = events.filter((event) => this.#applies(event))
    const forgotten = events.flatMap((event) =>
      event.type === 'DELETED' && !this.#applies(event) ? [this.#forget(event.object)] : [],
    )
    if (forgotten.length > 0) await Promise.all(forgotten)
    const { store, key, hooks } = this.#parts
    const tellsPrevious = this.#parts.tellsPrevious()
    try {
      if (applied.length === 0) {
        // Another watch of the collection may still be writing them.
        if (this.#storedVersion !== undefined) await store.settled(key)
        return tellsPrevious ? this.#withStoredPrevious(events, since) : events
      }
      if (!this.#hasStoredColumns()) {
        this.#storedVersion = undefined
        return events
      }
      const options = { since: this.#storedVersion, previous: tellsPrevious }
      const previous = await store.apply(key, applied, options)
      hooks.onRecorded('watch')
      this.#storedVersion = versionOf(applied.at(-1)) ?? this.#storedVersion
      this.#newestStored = this.#storedVersion
      if (!tellsPrevious) return events
      const told = events.map((event) => withPrevious(event, previous[applied.indexOf(event)]))
      return this.#withStoredPrevious(told, since)
    } catch (cause) {
      this.#storedVersion = undefined
      hooks.onStoreFailure(cause)
      return events
    }
  }

  /**
   * Adds the previous states of events that another watch has stored: only there they were known.
   */
  #withStoredPrevious(
    events: readonly WatchEvent[],
    since: ResourceVersion | undefined,
  ): readonly WatchEvent[] {
    const last = versionOf(events.findLast((each) => each.type === 'MODIFIED' && !each.previous))
    if (this.#storedVersion === undefined || since === undefined || !last) return events
    const changes = this.#parts.store.changes(this.#parts.key, since)
    if (typeof changes !== 'object') return events
    const stored = new Map<string, ApiObject | undefined>()
    try {
      for (const batch of changes.batches) {
        for (const { object, previous } of batch) stored.set(stateOf(object), previous)
        if (isNewer(batch.at(-1)?.object.resourceVersion, last)) break
      }
    } catch (cause) {
      // The store has reported it, and the events are stored.
      if (!(cause instanceof StoreFailure)) throw cause
    }
    return events.map((event) =>
      event.type === 'MODIFIED' && !event.previous
        ? withPrevious(event, stored.get(stateOf(event.object)))
        : event,
    )
  }

  #hasStoredColumns(): boolean {
    const { extra: columns, key, store } = this.#parts
    const extra = columns()
    if (extra === this.#extra) return true
    using stored = store.list(key)
    if (stored?.extra !== extra) return false
    this.#extra = extra
    return true
  }

  /**
   * A get may have recorded an object since the deletion that the collection has already, or that
   * it lacks as the watch is not recorded: earlier states go. Those of a cluster that was restored
   * from a backup since stay.
   */
  async #forget({ namespace, name, resourceVersion: at }: ApiObject): Promise<void> {
    const version = resourceVersion(at)
    const { store, key, hooks } = this.#parts
    const { partition, gvr } = key
    if (version === undefined || isNewer(this.#newestStored, store.version(key))) return
    const of = { partition, gvr, namespace, name }
    await store.forget(of, version).catch(hooks.onStoreFailure)
  }

  /** A bookmark at the stored version confirms that it is still the newest. */
  #applies(event: WatchEvent): boolean {
    const version = versionOf(event)
    if (this.#storedVersion === undefined || version === undefined) return false
    const order = compareVersions(version, this.#storedVersion)
    return order > 0 || (order === 0 && event.type === 'BOOKMARK')
  }
}

const stateOf = ({ namespace, name, resourceVersion: version }: ApiObject): string =>
  `${version} ${namespace}/${name}`

function withPrevious(event: WatchEvent, previous: ApiObject | undefined): WatchEvent {
  if (previous === undefined || !isObjectEvent(event)) return event
  return { ...event, previous }
}
