import { joined } from '../../base/bytes.ts'
import { listKind } from '../../api/codec/list.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { watchDecoder, type WatchCutter } from '../../api/codec/watch-decoder.ts'
import { versionOf, type WatchEvent } from '../../api/codec/watch.ts'
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
import { isTrue, type ResourceRequest } from '../../api/request/request-info.ts'
import { copyCollection } from '../store/copy-collection.ts'
import {
  storedList,
  widerCollection,
  type CoveringCollection,
} from '../answers/covering-collection.ts'
import type { CollectionKey, ObjectStore, Replacement } from '../store/store.ts'
import type { ReplayableBody } from './replayable-body.ts'
import { replacesStored, type RequestBaseline } from './replaces-stored.ts'
import type { ObservedVersions } from './observed.ts'
import type { RecorderHooks } from './recorder-hooks.ts'
import { shapeOf, tellsShapeOfEvents } from './shape.ts'

interface RecordedWatchParts {
  readonly arriving: ReplayableBody
  /** Those of the answer's encoding that the client takes, most wanted first. */
  readonly representations: readonly [Representation, ...Representation[]]
  readonly info: ResourceRequest
  readonly baseline: (representation: Representation) => RequestBaseline
  readonly observed: ObservedVersions
  readonly key: (representation: Representation) => CollectionKey
  readonly store: ObjectStore
  readonly hooks: RecorderHooks
  readonly exchange: Exchange
  /** Whether somebody asks what the store held before each event. */
  readonly tellsPrevious: () => boolean
}

/**
 * A watch whose events are committed before they are passed on, those that arrived together in one
 * commit. Where the upstream's stream breaks, the watch ends cleanly: clients then watch again from
 * their last version.
 */
export class RecordedWatch {
  readonly events: AsyncGenerator<readonly WatchEvent[]>
  readonly #parts: RecordedWatchParts
  #representation: Representation
  #cutter: WatchCutter
  #isWanted = true

  constructor(parts: RecordedWatchParts) {
    this.#parts = parts
    const [wanted] = parts.representations
    this.#representation = wanted
    this.#cutter = watchDecoder(wanted.encoding, wanted.projection)
    this.events = this.#recorded()
  }

  /** The form of the answer; before the first event, the one that the client wants most. */
  get representation(): Representation {
    return this.#representation
  }

  get gvk(): GVK {
    return this.#cutter.gvk
  }

  async *#recorded(): AsyncGenerator<readonly WatchEvent[]> {
    const { arriving, representations, hooks, exchange } = this.#parts
    try {
      const opening = representations.some(({ projection }) => projection !== 'object')
        ? await this.#detectRepresentation()
        : []
      await using keeper = await this.#eventRecorder()
      const begun = this.#cut(opening)
      if (begun.length > 0) yield this.#noteObserved(await keeper.keep(begun))
      for await (const group of arriving.chunks) {
        const events = this.#cut(group)
        if (events.length > 0) yield this.#noteObserved(await keeper.keep(events))
      }
    } catch (error) {
      if (error instanceof BrokenStream) return
      if (error instanceof MalformedBody) hooks.onMalformed(error, exchange)
      throw error
    } finally {
      await arriving.chunks.return(undefined)
    }
  }

  /**
   * A client that wants a conversion may be given whole objects, as only the events show. A form
   * that it did not ask for passes unrecorded.
   */
  async #detectRepresentation(): Promise<readonly Uint8Array[]> {
    const { arriving, representations } = this.#parts
    const { encoding } = this.#representation
    const opening = await arriving.prefix((bytes) => tellsShapeOfEvents(encoding, bytes))
    const projection = shapeOf(joined(opening))
    const answered = representations.find(
      (representation) => representation.projection === projection,
    )
    this.#representation = answered ?? { ...this.#representation, projection }
    this.#isWanted = answered !== undefined
    this.#cutter = watchDecoder(encoding, projection)
    return opening
  }

  /** The same events, which are about to be shown. */
  #noteObserved(events: readonly WatchEvent[]): readonly WatchEvent[] {
    const { observed, baseline, exchange, info } = this.#parts
    const of = { identity: exchange.identity, gvr: info.gvr }
    const end = events.find((event) => event.type === 'BOOKMARK' && event.initialEventsEnd)
    if (end) {
      const { isConsistent, lastObserved: before } = baseline(this.#representation)
      if (isConsistent) observed.noteConsistent(of, versionOf(end) ?? '', before)
    }
    // Those after initial events are in the order of their versions; before the end of these
    // nothing is known whole.
    observed.note(of, versionOf(events.at(-1)) ?? '')
    return events
  }

  #cut(chunks: readonly Uint8Array[]): readonly WatchEvent[] {
    return chunks.flatMap((chunk) => this.#cutter.push(chunk))
  }

  async #eventRecorder(): Promise<EventRecorder> {
    if (!this.#isWanted) return unrecorded
    const { info, store, hooks, baseline, key, tellsPrevious, exchange } = this.#parts
    const representation = this.#representation
    const parts = {
      store,
      hooks,
      baseline: baseline(representation),
      key: key(representation),
      tellsPrevious,
    }
    const { query } = info
    const isWatchList = isTrue(query.get('sendInitialEvents'))
    // Nobody would say where its initial events end.
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
 * Begins the collection of a watch that goes on from a version with what another collection has:
 * with that of the watch's token, where the service account of it has become known since, as
 * programs do not list again then; or with a part of a wider one, where the caller was answered
 * offline from that, or the next answer offline would be older than what this watch has told.
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
 * Records events; resolves to the same events, where `tellsPrevious` with what the store held
 * before each.
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
  readonly store: ObjectStore
  readonly hooks: RecorderHooks
  readonly tellsPrevious: () => boolean
}

/**
 * Changes to a stored collection. A watch that starts after the stored version leaves a gap, and
 * one that names no version tells of no deletions before it: both pass unrecorded. Of one that
 * starts earlier the events that are stored already are skipped.
 */
class RecordedChanges implements EventRecorder {
  readonly #parts: EventRecorderParts
  #known: ResourceVersion | undefined

  constructor(parts: EventRecorderParts, from: ResourceVersion | undefined) {
    this.#parts = parts
    const kept = resourceVersion(parts.store.version(parts.key))
    const joins = from !== undefined && kept !== undefined && compareVersions(from, kept) <= 0
    this.#known = joins ? kept : undefined
  }

  async keep(events: readonly WatchEvent[]): Promise<readonly WatchEvent[]> {
    const news = events.filter((event) => this.#isNews(event))
    if (news.length === 0) return events
    const { store, key, hooks } = this.#parts
    const tellsPrevious = this.#parts.tellsPrevious()
    try {
      const options = { since: this.#known, previous: tellsPrevious }
      const previous = await store.apply(key, news, options)
      hooks.onRecorded('watch')
      this.#known = versionOf(news.at(-1)) ?? this.#known
      if (!tellsPrevious) return events
      return events.map((event) => withPrevious(event, previous[news.indexOf(event)]))
    } catch (cause) {
      this.#known = undefined
      hooks.onStoreFailure(cause)
      return events
    }
  }

  /** A bookmark at the version that is known says that it is still the newest. */
  #isNews(event: WatchEvent): boolean {
    const version = versionOf(event)
    if (this.#known === undefined || version === undefined) return false
    const order = compareVersions(version, this.#known)
    return order > 0 || (order === 0 && event.type === 'BOOKMARK')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing is held between groups.
  }
}

function withPrevious(event: WatchEvent, previous: ApiObject | undefined): WatchEvent {
  if (previous === undefined || event.type === 'BOOKMARK' || event.type === 'ERROR') return event
  return { ...event, previous }
}

/**
 * A WatchList: its initial events replace the collection when their bookmark comes, and are not
 * visible before.
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

  /** Servers send changes that happen meanwhile among the initial objects. */
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
    // What is kept is newer, and its changes are told apart from what this watch repeats.
    if (!replacesStored(version, baseline, store.version(key))) return this[Symbol.asyncDispose]()
    const gvk = listKind(this.#gvk())
    await this.#replacement?.commit({ gvk, resourceVersion: version, extra: '' })
    this.#parts.hooks.onRecorded('watch')
    await this[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const dropped = this.#replacement
    this.#replacement = undefined
    await dropped?.[Symbol.asyncDispose]()
  }
}
