import { listKind } from '../codec/list.ts'
import { MalformedBody } from '../codec/malformed-body.ts'
import { watchCutter } from '../codec/watch-cutter.ts'
import type { WatchEvent } from '../codec/watch.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { GVK } from '../kube/gvk.ts'
import type { ApiObject } from '../kube/object.ts'
import { compareVersions, resourceVersion, type ResourceVersion } from '../kube/resource-version.ts'
import type { Form } from '../request/form.ts'
import { isTrue, type ResourceRequest } from '../request/request-info.ts'
import type { CollectionKey, ObjectStore, Replacement } from '../store/store.ts'
import { isNews, type Asked } from './news.ts'
import type { RecorderHooks } from './recorder.ts'

interface RecordedWatchParts {
  readonly chunks: AsyncIterable<readonly Uint8Array[]>
  readonly form: Form
  readonly info: ResourceRequest
  readonly asked: Asked
  readonly key: CollectionKey
  readonly store: ObjectStore
  readonly hooks: RecorderHooks
  readonly exchange: Exchange
}

/**
 * The events of a watch, each committed before it is passed on, those that arrived together in one commit. Where the upstream's stream
 * dies the watch ends, which clients take for what it is: they ask again from their last version.
 */
export function recordedEvents(parts: RecordedWatchParts): {
  events: AsyncIterable<readonly WatchEvent[]>
  gvk: () => GVK
} {
  const cutter = watchCutter(parts.form.encoding, parts.form.shape)
  async function* events(): AsyncGenerator<readonly WatchEvent[]> {
    await using keeper = keeperOf(parts, () => cutter.gvk)
    try {
      for await (const group of cut(parts.chunks, cutter)) yield await keeper.keep(group)
    } catch (error) {
      if (!(error instanceof MalformedBody)) return
      parts.hooks.onMalformed(error, parts.exchange)
      throw error
    }
  }
  return { events: events(), gvk: () => cutter.gvk }
}

async function* cut(
  chunks: AsyncIterable<readonly Uint8Array[]>,
  cutter: ReturnType<typeof watchCutter>,
): AsyncGenerator<readonly WatchEvent[]> {
  for await (const group of chunks) {
    const events = group.flatMap((chunk) => cutter.push(chunk))
    if (events.length > 0) yield events
  }
}

/** Decides how events are kept; resolves to the events with what the store held before. */
interface Keeper extends AsyncDisposable {
  keep(events: readonly WatchEvent[]): Promise<readonly WatchEvent[]>
}

function keeperOf(parts: RecordedWatchParts, gvk: () => GVK): Keeper {
  const { query } = parts.info
  if (isTrue(query.get('sendInitialEvents'))) return new InitialEvents(parts, gvk)
  return new Changes(parts, resourceVersion(query.get('resourceVersion') ?? undefined))
}

/**
 * Changes to a collection that is kept. A watch that starts after what is kept leaves a gap, and one that starts nowhere tells of no
 * deletions: both pass unrecorded. One that starts before repeats what is known, which is skipped.
 */
class Changes implements Keeper {
  readonly #parts: RecordedWatchParts
  #known: ResourceVersion | undefined

  constructor(parts: RecordedWatchParts, from: ResourceVersion | undefined) {
    this.#parts = parts
    const kept = resourceVersion(parts.store.version(parts.key))
    const joins = from !== undefined && kept !== undefined && compareVersions(from, kept) <= 0
    this.#known = joins ? kept : undefined
  }

  async keep(events: readonly WatchEvent[]): Promise<readonly WatchEvent[]> {
    const news = events.filter((event) => this.#isNews(event))
    if (news.length === 0) return events
    try {
      const previous = await this.#parts.store.apply(this.#parts.key, news, this.#known)
      this.#parts.hooks.onRecorded('watch')
      this.#known = versionOf(news.at(-1)) ?? this.#known
      return events.map((event) => withPrevious(event, previous[news.indexOf(event)]))
    } catch (cause) {
      this.#known = undefined
      this.#parts.hooks.onStoreFailure(cause)
      return events
    }
  }

  #isNews(event: WatchEvent): boolean {
    const version = versionOf(event)
    return (
      this.#known !== undefined &&
      version !== undefined &&
      compareVersions(version, this.#known) > 0
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing is held between groups.
  }
}

function versionOf(event: WatchEvent | undefined): ResourceVersion | undefined {
  if (event === undefined || event.type === 'ERROR') return undefined
  return resourceVersion(
    event.type === 'BOOKMARK' ? event.resourceVersion : event.object.resourceVersion,
  )
}

function withPrevious(event: WatchEvent, previous: ApiObject | undefined): WatchEvent {
  if (previous === undefined || event.type === 'BOOKMARK' || event.type === 'ERROR') return event
  return { ...event, previous }
}

/** A WatchList: its initial events replace the collection when their bookmark comes, and are nothing before. */
class InitialEvents implements Keeper {
  readonly #parts: RecordedWatchParts
  readonly #gvk: () => GVK
  #replacement: Replacement | undefined
  #changes: Changes | undefined

  constructor(parts: RecordedWatchParts, gvk: () => GVK) {
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
    this.#changes = new Changes(this.#parts, versionOf(events[closing]))
    return [
      ...events.slice(0, closing + 1),
      ...(await this.#changes.keep(events.slice(closing + 1))),
    ]
  }

  /** Servers send what happens meanwhile among the objects that there were. */
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
    const { store, key, asked } = this.#parts
    // What is kept is newer, and its changes are told apart from what this watch repeats.
    if (!isNews(version, asked, store.version(key))) return this[Symbol.asyncDispose]()
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
