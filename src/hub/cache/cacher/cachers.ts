import { follow } from '../../../base/abort.ts'
import { jitter } from '../../../base/clock.ts'
import { lruCache } from '../../../base/lru-cache.ts'
import { everything } from '../../../api/codec/selection.ts'
import {
  because,
  UnusableAnswer,
  type Credential,
  type Exchange,
  type Handler,
  type Reply,
  type WatchReply,
} from '../../../http/exchange/exchange.ts'
import {
  isNewer,
  resourceVersion,
  type ResourceVersion,
} from '../../../api/kube/resource-version.ts'
import { requestCredentialsOf } from '../../../http/exchange/own-request.ts'
import { StatusError } from '../../../api/kube/status.ts'
import {
  listOptionsOf,
  watchOptionsOf,
  type ListOptions,
} from '../../../api/request/list-options.ts'
import type { ResourceRequest } from '../../../api/request/request-info.ts'
import { watchLifetimeMs } from '../../../api/request/watch-times.ts'
import { refusalOfNewer, refuseInvalidVersion } from '../../answers/offline-reads.ts'
import {
  coveringCollection,
  wantedCollections,
  type WantedCollection,
} from '../../answers/covering-collection.ts'
import { expiredWatch, isForPerson, withStaleness } from '../../answers/replies.ts'
import type { CollectionKey, ObjectStore } from '../../store/store.ts'
import type { Recorder } from '../recorder.ts'
import { textOf } from '../../store/state/address.ts'
import { Cacher, type CacherHooks, type CacheWatchOptions } from './cacher.ts'
import type { EventMemory } from './event-log.ts'
import {
  storedListerWatcher,
  type Connectivity,
  type ReflectorClient,
  type UpstreamHandlers,
} from './stored-lister-watcher.ts'

interface CachersParts {
  readonly store: ObjectStore
  readonly upstream: UpstreamHandlers
  readonly recorder: Pick<Recorder, 'recordsWatch' | 'hooks'>
  /** Whether the events of a watch need the previous state of each object. */
  readonly comparesEvents: (exchange: Exchange) => boolean
  /** Whether the hub can reach API servers with a credential. */
  readonly connectivity: (credential: Credential) => Connectivity
  /** The shortest lifetime of a watch whose client set no timeout. */
  readonly leastMs: number
  /** The most memory for all collections' events, in bytes. */
  readonly mostBytes: number
  readonly hooks: CacherHooks
}

/**
 * How long the upstream watch of a collection stays open without clients: a client whose watch has
 * timed out returns at once.
 */
const idleMs = 2_000

/** How long a client waits for the upstream watch to open. */
const patienceMs = 1_000

/**
 * For so long, or half of it, watches of a collection that is not stored get no second 410: one
 * that the store has no room for would be listed for each watch.
 */
export const listedMs = 3_600_000

/** More collections than the components of a node watch; an identity may last for one token. */
const mostListed = 1_024

interface RecordedWatchRequest {
  readonly exchange: Exchange
  readonly info: ResourceRequest
  readonly options: ListOptions
}

/**
 * The cachers of all watched collections that are recorded: one for each collection in one
 * representation, and for each identity unless one copy is kept for all. One upstream watch serves
 * all clients that watch the same collection, and a client's watch outlives it.
 */
export class Cachers implements AsyncDisposable {
  readonly #parts: CachersParts
  readonly #served = new Map<string, Cacher>()
  /** Collections that were not stored when a client resumed a watch on them: it got 410. */
  readonly #listed = lruCache<string, true>(mostListed)
  readonly #closing = new AbortController()
  readonly #memory: EventMemory

  constructor(parts: CachersParts) {
    this.#parts = parts
    this.#memory = { bytes: 0, most: parts.mostBytes, onFull: () => this.#shrink() }
  }

  /** All cachers. */
  get all(): readonly Cacher[] {
    return [...this.#served.values()]
  }

  /** The memory of all collections' events. */
  get bytes(): number {
    return this.#memory.bytes
  }

  /**
   * Answers while the hub is online. A watch that is recorded is answered from the cacher of its
   * collection alone: the one writer of what is stored. By `forward` only what is not recorded, and
   * what the API server or the store refuses.
   */
  online(exchange: Exchange, forward: Handler<Exchange>): Promise<Reply> {
    const request = this.#request(exchange)
    return request ? this.#watch(request, forward) : forward(exchange)
  }

  async #watch(request: RecordedWatchRequest, forward: Handler<Exchange>): Promise<Reply> {
    const { exchange, options } = request
    const reply =
      options.sendInitialEvents || isAny(options.resourceVersion)
        ? await this.#afterList(request, forward)
        : await this.#after(request, forward)
    if (!reply) return forward(exchange)
    return reply.from === 'cloud' ? reply : because(reply, 'the cacher of the collection answers')
  }

  /**
   * Answers a watch from the stored state, and with the events that follow once the hub is online;
   * `undefined`: the collection is not stored. Throws the StatusError with which an API server
   * refuses a watch before it begins.
   */
  offline(exchange: Exchange, info: ResourceRequest): WatchReply | undefined {
    const options = listOptionsOf(info.query, true, true)
    const { resourceVersion: requested } = options
    const { store } = this.#parts
    const source = coveringCollection(wantedCollections(exchange, info), store)
    // Without versions that compare no event can be said to follow.
    if (!source || resourceVersion(source.resourceVersion) === undefined) return undefined
    const cacher = this.#of(exchange, source)
    cacher.readAs(clientOf(exchange))
    const { stored } = cacher
    if (!stored) return undefined
    const { resourceVersion: version, confirmedAt } = stored
    refuseInvalidVersion(requested, version, 'watch')
    const newer = refusalOfNewer(requested, version)
    if (options.sendInitialEvents === true && newer) throw new StatusError(newer)
    // A client that knows a newer version waits, as at an API server: a list would show it an older
    // state.
    const start = this.#watchOptions({ exchange, info, options }, version)
    const selection = source.selection ?? everything
    const reply = cacher.watch({ ...start, selection }) ?? cacher.expired(requested)
    return { ...reply, headers: withStaleness(reply.headers, exchange, confirmedAt) }
  }

  /** The exchange, where it is a watch that is recorded. */
  #request(exchange: Exchange): RecordedWatchRequest | undefined {
    const { info } = exchange
    if (!info.isResource || info.verb !== 'watch' || !requestCredentialsOf(exchange))
      return undefined
    const options = watchOptionsOf(info.query)
    if (!options || !this.#parts.recorder.recordsWatch(exchange)) return undefined
    return { exchange, info, options }
  }

  /**
   * The events after a version, or 410 where they are not known: then the client lists, and its
   * list is stored. `undefined`: the watch is refused, or the list was not stored either.
   */
  async #after(
    request: RecordedWatchRequest,
    forward: Handler<Exchange>,
  ): Promise<Reply | undefined> {
    const { exchange, options } = request
    const version = resourceVersion(options.resourceVersion)
    const wanted = this.#wanted(request)
    if (version === undefined || !wanted) return undefined
    const stored = this.#parts.store.version(wanted.key)
    if (stored === undefined) return this.#toList(exchange, wanted, version)
    if (resourceVersion(stored) === undefined) return undefined
    const reading = clientOf(exchange)
    const beside = refusalBeside(this.#cacherOf(wanted.key), reading, exchange, forward)
    const refusal = beside && (await beside)
    if (refusal) return refusal
    const cacher = this.#of(exchange, wanted)
    cacher.readAs(reading)
    await cacher.open(patienceMs)
    if (cacher.isRefused || exchange.signal.aborted) return undefined
    return cacher.watch(this.#watchOptions(request, version)) ?? cacher.expired(version)
  }

  /**
   * 410 for a watch on a collection that is not stored: its list was recorded in a cache that has
   * been lost since, or under another identity. Not often (`listedMs`); never for a person, whose
   * command would end.
   */
  #toList(
    exchange: Exchange,
    { key, representation }: WantedCollection,
    version: string,
  ): WatchReply | undefined {
    const id = textOf(key)
    if (isForPerson(exchange) || this.#listed.has(id)) return undefined
    this.#listed.set(id, true, { ttl: jitter(listedMs / 2, listedMs) })
    return expiredWatch(representation, `too old resource version: ${version}`)
  }

  /**
   * A WatchList: the state, which is listed in the client's place, and the events after it; these
   * alone where the client wants no state. `undefined`: the list is refused, fails or is not
   * stored.
   */
  async #afterList(
    request: RecordedWatchRequest,
    forward: Handler<Exchange>,
  ): Promise<Reply | undefined> {
    const { exchange, options } = request
    const { resourceVersion: requested } = options
    const least = isAny(requested) ? requested : resourceVersion(requested)
    const wanted = this.#wanted(request)
    if (least === undefined || !wanted) return undefined
    const { key } = wanted
    const reading = clientOf(exchange)
    const known = this.#cacherOf(key)
    if (known?.isRefused && known.usesCredentialOf(reading)) return undefined
    const listed = await this.#list(exchange, wanted, reading, least)
    const version = resourceVersion(this.#parts.store.version(key))
    if (listed === undefined || version === undefined) return undefined
    if (isNewer(listed, version) || isNewer(least, version)) return undefined
    const beside = refusalBeside(this.#cacherOf(key), reading, exchange, forward)
    const refusal = beside && (await beside)
    if (refusal) return refusal
    const cacher = this.#of(exchange, wanted)
    cacher.readAs(reading)
    return cacher.watch(this.#watchOptions(request, version))
  }

  /** The version of the list; `undefined` where there is none. */
  async #list(
    exchange: Exchange,
    wanted: WantedCollection,
    reading: ReflectorClient,
    least: '' | '0' | ResourceVersion,
  ): Promise<string | undefined> {
    const { upstream, hooks } = this.#parts
    const ending = new AbortController()
    using _over = { [Symbol.dispose]: () => ending.abort() }
    using _client = follow(exchange.signal, ending)
    using _hub = follow(this.#closing.signal, ending)
    try {
      const of = { ...wanted, upstream, client: () => reading }
      return await storedListerWatcher(of).list(least, ending.signal)
    } catch (cause) {
      // Perhaps none has that version: all API servers lag, or the cluster was restored.
      if (cause instanceof UnusableAnswer && !isAny(least))
        return this.#list(exchange, wanted, reading, '')
      if (!ending.signal.aborted) hooks.onFailed(wanted.key.gvr, cause)
      return undefined
    }
  }

  /**
   * The collection in the representation in which it is stored, else in the preferred one. Only the
   * API server knows whether it answers with less than is preferred.
   */
  #wanted({ exchange, info }: RecordedWatchRequest): WantedCollection | undefined {
    const wanted = wantedCollections(exchange, info)
    const [preferred] = wanted
    const stored = wanted.find(
      ({ key, representation: { projection } }) =>
        projection === preferred?.representation.projection &&
        this.#parts.store.version(key) !== undefined,
    )
    return stored ?? preferred
  }

  /**
   * An API server that serves WatchLists treats a watch from any version as one, unless it says
   * otherwise. `stored`: the version of the stored state.
   */
  #watchOptions(
    { exchange, info, options }: RecordedWatchRequest,
    stored: string,
  ): CacheWatchOptions {
    const { resourceVersion: requested, allowBookmarks, sendInitialEvents } = options
    return {
      ...((sendInitialEvents ?? isAny(requested))
        ? { state: true }
        : { from: isAny(requested) ? stored : requested }),
      selection: everything,
      bookmarks: allowBookmarks,
      lastsMs: watchLifetimeMs(info, this.#parts.leastMs),
      signal: exchange.signal,
      comparesEvents: this.#parts.comparesEvents(exchange),
    }
  }

  #cacherOf(key: CollectionKey): Cacher | undefined {
    return this.#served.get(textOf(this.#parts.store.copyOf(key)))
  }

  #of(exchange: Exchange, wanted: WantedCollection): Cacher {
    const { store, upstream, recorder, connectivity, hooks } = this.#parts
    const key = store.copyOf(wanted.key)
    const id = textOf(key)
    const existing = this.#served.get(id)
    if (existing) return existing
    const cacher = new Cacher(
      {
        key,
        representation: wanted.representation,
        store,
        upstream,
        records: recorder.hooks,
        connectivity,
        idleMs,
        hooks,
        memory: this.#memory,
        onIdle: () => this.#served.delete(id),
      },
      clientOf(exchange),
    )
    this.#served.set(id, cacher)
    return cacher
  }

  /** Halves the largest logs until all fit. */
  #shrink(): void {
    while (this.bytes > this.#parts.mostBytes) {
      const [most] = this.all.toSorted((a, b) => b.bytes - a.bytes)
      if (!most?.bytes) break
      most.shrink(most.bytes / 2)
    }
  }

  /** Ends all cache watchers and upstream watches. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    const { all } = this
    this.#served.clear()
    await Promise.all(all.map((cacher) => cacher[Symbol.asyncDispose]()))
  }
}

function clientOf(exchange: Exchange): ReflectorClient {
  const { identity, credential, component } = exchange
  const userAgent = exchange.headers.get('user-agent')
  return {
    ...(requestCredentialsOf(exchange) ?? { identity, credential }),
    ...(userAgent !== undefined && { userAgent }),
    component,
  }
}

/** Whether a watch may begin at any version: at the newest for '', of any age for '0'. */
const isAny = (requested: string): requested is '' | '0' => requested === '' || requested === '0'

/**
 * The API server's answer to the client's own watch, unless it accepts it. It has to accept a
 * caller for this collection before a cacher answers that watches as another, or with another
 * token. `undefined` where none has to: at once, for another caller could open the cacher's watch
 * meanwhile.
 */
const refusalBeside = (
  cacher: Cacher | undefined,
  reading: ReflectorClient,
  exchange: Exchange,
  forward: Handler<Exchange>,
): Promise<Reply | undefined> | undefined =>
  cacher?.isRunning && !cacher.usesCredentialOf(reading)
    ? watchRefusal(exchange, forward)
    : undefined

/** `undefined`: the API server accepts the watch, which is closed. */
async function watchRefusal(
  exchange: Exchange,
  forward: Handler<Exchange>,
): Promise<Reply | undefined> {
  const ending = new AbortController()
  follow(exchange.signal, ending)
  const reply = await forward({ ...exchange, signal: ending.signal })
  if (reply.kind !== 'bytes' || reply.status !== 200) return reply
  ending.abort()
  return undefined
}
