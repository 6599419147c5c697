import { joined } from '../../base/bytes.ts'
import { listKind } from '../../api/codec/list.ts'
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
import { isTrue, type ResourceRequest } from '../../api/request/request-info.ts'
import { collectionKey } from '../answers/keys.ts'
import { copyCollection } from '../store/copy-collection.ts'
import {
  storedList,
  widerCollection,
  type CoveringCollection,
} from '../answers/covering-collection.ts'
import {
  StoreFailure,
  type CollectionKey,
  type ObjectStore,
  type Replacement,
} from '../store/store.ts'
import type { ReplayableBody } from './replayable-body.ts'
import { replacesStored, type RequestBaseline } from './replaces-stored.ts'
import type { RecorderHooks } from './recorder-hooks.ts'
import { projectionOf, showsEventProjection } from './projection.ts'

interface RecordedWatchParts {
  readonly replayable: ReplayableBody
  /**
   * The representations in the answer's encoding that the client accepts, in order of preference.
   */
  readonly representations: readonly [Representation, ...Representation[]]
  readonly info: ResourceRequest
  readonly baseline: (representation: Representation) => RequestBaseline
  readonly store: ObjectStore
  readonly hooks: RecorderHooks
  readonly exchange: Exchange
  /** Whether a reader needs the previous state of each object. */
  readonly tellsPrevious: () => boolean
}

/**
 * A watch whose events are committed before they are passed on, those that arrived together in one
 * commit. Where the upstream stream breaks, the watch ends cleanly, and clients watch again from
 * their last version.
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
      await using keeper = await this.#eventRecorder()
      const begun = this.#cut(opening)
      if (begun.length > 0) yield await keeper.keep(begun)
      for await (const group of replayable.chunks) {
        const events = this.#cut(group)
        if (events.length > 0) yield await keeper.keep(events)
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

  async #eventRecorder(): Promise<EventRecorder> {
    if (!this.#isWanted) return unrecorded
    const { info, store, hooks, baseline, tellsPrevious, exchange } = this.#parts
    const representation = this.#representation
    const parts = {
      store,
      hooks,
      baseline: baseline(representation),
      key: collectionKey(exchange, info, representation),
      extra: () => this.extra,
      tellsPrevious,
    }
    const { query } = info
    const isWatchList = isTrue(query.get('sendInitialEvents'))
    // Without bookmarks the end of its initial events is not marked.
    if (isWatchList && !isTrue(query.get('allowWatchBookmarks'))) return unrecorded
    if (isWatchList) return new RecordedInitialEvents(parts, () => this.gvk)
    const from = resourceVersion(query.get('resourceVersion') ?? undefined)
    await seedFromOther(parts.key, { representation, from, exchange, store }).catch(
      hooks.onStoreFailure,
    )
    return new RecordedChanges(parts, from)
  }
}

interface ResumedFrom {
  readonly representation: Representation
  readonly from: ResourceVersion | undefined
  readonly exchange: Exchange
  readonly store: ObjectStore
}

/**
 * Copies another collection as the base of a watch that continues from a version: that of the
 * watch's token, where its service account has become known since and the client does not list
 * again; or the part of a wider one, where an offline answer came from that, or the next offline
 * answer would be older than this watch.
 */
async function seedFromOther(
  key: CollectionKey,
  { representation, from, exchange, store }: ResumedFrom,
): Promise<void> {
  if (from === undefined || store.version(key) !== undefined) return
  const other =
    ofToken(key, representation, exchange, store) ?? widerCollection(key, representation, store)
  const kept = resourceVersion(other?.resourceVersion)
  if (!other || kept === undefined || compareVersions(from, kept) > 0) return
  const stored = storedList(other, store)
  if (stored) await copyCollection(store, key, stored)
}

function ofToken(
  key: CollectionKey,
  representation: Representation,
  { claim, identity }: Exchange,
  store: ObjectStore,
): CoveringCollection | undefined {
  if (!claim || claim.tokenIdentity === identity) return undefined
  const before = { ...key, partition: { ...key.partition, identity: claim.tokenIdentity } }
  const version = store.version(before)
  return version === undefined
    ? undefined
    : { representation, key: before, resourceVersion: version }
}

/**
 * Records events; resolves to the same events, with the previous state of each object where
 * `tellsPrevious`.
 */
interface EventRecorder extends AsyncDisposable {
  keep(events: readonly WatchEvent[]): Promise<readonly WatchEvent[]>
}

const unrecorded: EventRecorder = {
  keep: (events) => Promise.resolve(events),
  [Symbol.asyncDispose]: () => Promise.resolve(),
}

interface EventRecorderParts {
  readonly baseline: RequestBaseline
  readonly key: CollectionKey
  /** The columns of a Table, once an event has shown them. */
  readonly extra: () => string
  readonly store: ObjectStore
  readonly hooks: RecorderHooks
  readonly tellsPrevious: () => boolean
}

/**
 * Changes to a stored collection. A watch that starts after the stored version leaves a gap, and
 * one without a version reports no earlier deletions: neither is recorded. Of one that starts
 * earlier the events up to the stored version are skipped. Rows of a Table with other columns than
 * the stored ones, as from an API server of another version, are not recorded either. Of events
 * that are not recorded, a deletion still takes what a get has recorded of the object before.
 */
class RecordedChanges implements EventRecorder {
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

  async [Symbol.asyncDispose](): Promise<void> {
    // No state to release.
  }
}

const stateOf = ({ namespace, name, resourceVersion: version }: ApiObject): string =>
  `${version} ${namespace}/${name}`

function withPrevious(event: WatchEvent, previous: ApiObject | undefined): WatchEvent {
  if (previous === undefined || !isObjectEvent(event)) return event
  return { ...event, previous }
}

/**
 * A WatchList: its initial events replace the collection at their bookmark, and are invisible
 * before.
 */
class RecordedInitialEvents implements EventRecorder {
  readonly #parts: EventRecorderParts
  readonly #gvk: () => GVK
  #replacement: Replacement | undefined
  #changes: RecordedChanges | undefined

  constructor(parts: EventRecorderParts, gvk: () => GVK) {
    this.#parts = parts
    this.#gvk = gvk
    this.#replacement = parts.store.replace(parts.key)
  }

  async keep(events: readonly WatchEvent[]): Promise<readonly WatchEvent[]> {
    if (this.#changes) return this.#changes.keep(events)
    const closing = events.findIndex((event) => event.type === 'BOOKMARK' && event.initialEventsEnd)
    const initial = closing < 0 ? events : events.slice(0, closing)
    try {
      await this.#stage(initial)
      const bookmark = events[closing]
      if (bookmark?.type === 'BOOKMARK') await this.#commit(bookmark.resourceVersion)
    } catch (cause) {
      await this[Symbol.asyncDispose]()
      this.#parts.hooks.onStoreFailure(cause)
    }
    if (closing < 0) return events
    this.#changes = new RecordedChanges(this.#parts, versionOf(events[closing]))
    return [
      ...events.slice(0, closing + 1),
      ...(await this.#changes.keep(events.slice(closing + 1))),
    ]
  }

  /** API servers send concurrent changes among the initial objects. */
  async #stage(events: readonly WatchEvent[]): Promise<void> {
    let objects: ApiObject[] = []
    for (const event of events) {
      if (event.type === 'ADDED' || event.type === 'MODIFIED') objects.push(event.object)
      if (event.type !== 'DELETED') continue
      await this.#add(objects)
      objects = []
      this.#replacement?.remove(event.object)
    }
    await this.#add(objects)
  }

  async #add(objects: readonly ApiObject[]): Promise<void> {
    if (objects.length > 0) await this.#replacement?.add({ objects })
  }

  async #commit(version: string): Promise<void> {
    const { store, key, baseline } = this.#parts
    // The stored collection is newer, and the changes after it are distinguished from repetitions.
    if (!replacesStored(version, baseline, store.version(key))) {
      await this[Symbol.asyncDispose]()
      return store.settled(key)
    }
    const gvk = listKind(this.#gvk())
    await this.#replacement?.commit({ gvk, resourceVersion: version, extra: this.#parts.extra() })
    this.#parts.hooks.onRecorded('watch')
    await this[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const dropped = this.#replacement
    this.#replacement = undefined
    await dropped?.[Symbol.asyncDispose]()
  }
}
