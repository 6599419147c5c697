import { onAbort, type AbortSignalLike } from '../../../base/abort.ts'
import { after, jitter } from '../../../base/clock.ts'
import { lruCache } from '../../../base/lru-cache.ts'
import { everything } from '../../../api/codec/selection.ts'
import { because } from '../../../http/exchange/explanation.ts'
import type { Credential, Exchange, Reply, WatchReply } from '../../../http/exchange/exchange.ts'
import {
  isNewer,
  resourceVersion,
  type ResourceVersion,
} from '../../../api/kube/resource-version.ts'
import { StatusError } from '../../../api/kube/status.ts'
import { RequestRefused } from '../../../api/reflector/reflector.ts'
import { namesObjects, type Representation } from '../../../api/request/representation.ts'
import { areValidListOptions, listOptionsOf } from '../../../api/request/list-options.ts'
import { isTrue, type ResourceRequest } from '../../../api/request/request-info.ts'
import { watchLifetimeMs } from '../../../api/request/watch-times.ts'
import { refusalOfNewer, refuseInvalidVersion } from '../../answers/requested-version.ts'
import { collectionKey } from '../../answers/keys.ts'
import { coveringCollection } from '../../answers/covering-collection.ts'
import { withStaleness } from '../../answers/staleness.ts'
import type { CollectionKey, ObjectStore } from '../../store/store.ts'
import type { Recorder } from '../recorder.ts'
import { collectionId } from '../collection-id.ts'
import { watchStart } from './read-start.ts'
import { Cacher, type CacherHooks, type CacheWatchOptions, type Connectivity } from './cacher.ts'
import { continued, ownUpstream, type PassThrough } from './continued.ts'
import type { LogBounds } from './event-log.ts'
import { requestCredentialsOf } from './request-credentials.ts'
import {
  storedListerWatcher,
  type ReflectorClient,
  type UpstreamHandlers,
} from './stored-lister-watcher.ts'
import { reconnectRank } from './reconnect-order.ts'

interface CachersParts {
  readonly store: ObjectStore
  readonly upstream: UpstreamHandlers
  readonly recorder: Pick<Recorder, 'recordsWatch' | 'comparesEvents'>
  /** Whether the hub can reach API servers with a credential. */
  readonly connectivity: (credential: Credential) => Connectivity
  /** The shortest lifetime of a watch whose client set no timeout. */
  readonly leastMs: number
  /** The bounds of each collection's events in memory. */
  readonly bounds: LogBounds
  /** The most memory for all collections' events, in bytes. */
  readonly mostBytes: number
  readonly hooks: CacherHooks
}

/**
 * How long the upstream watch of a collection stays open without clients: a client whose watch has
 * timed out returns at once.
 */
const idleMs = 2_000

/** How long a client waits for the upstream watch to open before its own watch is forwarded. */
const patienceMs = 1_000

/**
 * How long the events of a client that resumes a watch on a collection that is not stored wait for
 * a recorded list of it: longer than a list takes on most links.
 */
export const recordingMs = 10_000

/**
 * How long a collection that was listed is not listed again, at most: one that the store has no
 * room for would be listed for each watch.
 */
export const listedMs = 3_600_000

/** More collections than the components of a node watch; an identity may last for one token. */
const mostListed = 1_024

interface RecordedWatchRequest {
  readonly exchange: Exchange
  readonly info: ResourceRequest
}

/** A cacher, and its clients by component. */
interface ServedCacher {
  readonly cacher: Cacher
  readonly clients: Map<string, { readonly exchange: Exchange; open: number }>
}

/**
 * The cachers of all watched collections that are recorded: one for each identity, representation
 * and collection. One upstream watch serves all clients of an identity that watch the same
 * collection, and a client's watch outlives it.
 */
export class Cachers implements AsyncDisposable {
  readonly #parts: CachersParts
  readonly #served = new Map<string, ServedCacher>()
  /**
   * Collections that the hub has listed, or lists, because a client has resumed a watch on them and
   * they were not stored.
   */
  readonly #listed = lruCache<string, Promise<void>>(mostListed)
  readonly #closing = new AbortController()
  /** An upper bound of the events' memory: logs may have dropped some since. */
  #bytesAtMost = 0

  constructor(parts: CachersParts) {
    this.#parts = parts
  }

  /** All cachers. */
  get all(): readonly Cacher[] {
    return [...this.#served.values()].map(({ cacher }) => cacher)
  }

  /** The memory of all collections' events. */
  get bytes(): number {
    return [...this.#served.values()].reduce((sum, { cacher }) => sum + cacher.bytes, 0)
  }

  /**
   * Answers while the hub is online: from a cacher that has the events after the client's version,
   * or by `passThrough`. A watch that passes through continues from the cacher at a bookmark, and
   * when it is cut.
   */
  async online(exchange: Exchange, passThrough: PassThrough): Promise<Reply> {
    const request = this.#request(exchange)
    if (!request) return passThrough(exchange.signal)
    const reply = await this.#live(request)
    if (reply) return because(reply, 'the cacher of the collection has the requested events')
    return this.#continued(request, passThrough)
  }

  /**
   * Answers a watch from the stored state, and with the events that follow once the hub is online;
   * `undefined`: the collection is not stored. Throws the StatusError with which an API server
   * refuses a watch before it begins.
   */
  offline(exchange: Exchange, info: ResourceRequest): WatchReply | undefined {
    const { resourceVersion: requested, sendInitialEvents } = listOptionsOf(info.query, true, true)
    const { store } = this.#parts
    const source = coveringCollection(exchange, info, store)
    if (!source) return undefined
    const served = this.#of({ exchange, info }, source.key, source.representation)
    const { cacher } = served
    cacher.readAs(this.#clientOf(exchange, served.clients))
    using stored = cacher.stored()
    if (!stored) return undefined
    const { resourceVersion: version } = stored
    refuseInvalidVersion(requested, version, 'watch')
    const isAny = requested === '' || requested === '0'
    const newer = refusalOfNewer(requested, version)
    if (sendInitialEvents === true && newer) throw new StatusError(newer)
    // An API server that serves WatchLists treats a watch from any version as one, unless it says
    // otherwise. A client that knows a newer version waits, as at an API server: a list would show
    // it an older state.
    const start =
      (sendInitialEvents ?? isAny)
        ? ({ state: 'with-end' } as const)
        : { from: isAny ? version : requested }
    const selection = source.selection ?? everything
    const options = { ...this.#watchOptions({ exchange, info }, served), ...start }
    const key = JSON.stringify([
      info.namespace,
      info.query.get('labelSelector'),
      info.query.get('fieldSelector'),
    ])
    const reply =
      cacher.watch({ ...options, selected: { selection, key } }) ?? cacher.expired(requested)
    return { ...reply, headers: withStaleness(reply.headers, exchange, cacher.confirmedAt) }
  }

  /** The exchange, where it is a watch that is recorded and names its objects. */
  #request(exchange: Exchange): RecordedWatchRequest | undefined {
    const { info } = exchange
    if (!info.isResource || info.verb !== 'watch') return undefined
    const [preferred] = exchange.representations
    if (!preferred || !namesObjects(preferred) || !areValidListOptions(info.query, true))
      return undefined
    return this.#parts.recorder.recordsWatch(exchange) ? { exchange, info } : undefined
  }

  /** The answer of a cacher whose upstream watch is open. */
  async #live(request: RecordedWatchRequest): Promise<WatchReply | undefined> {
    const { exchange, info } = request
    const { store } = this.#parts
    const start = watchStart(info)
    if (start.kind === 'delegated' || start.kind === 'consistent') return undefined
    // Only the API server knows whether it answers with less than is preferred.
    const [preferred] = exchange.representations
    const representation = exchange.representations.find(
      (each) =>
        each.projection === preferred?.projection &&
        store.version(collectionKey(exchange, info, each)) !== undefined,
    )
    if (!representation || !requestCredentialsOf(exchange)) return undefined
    const key = collectionKey(exchange, info, representation)
    const served = this.#of(request, key, representation)
    const { cacher } = served
    const reading = this.#clientOf(exchange, served.clients)
    // The API server has to accept this token for this collection first.
    if (cacher.isLive && !cacher.usesCredentialOf(reading)) return undefined
    const options = this.#watchOptions(request, served)
    if (start.kind === 'state') {
      // Cells of a Table are as old as the row, such as an AGE: an API server writes them again.
      if (representation.projection === 'table') return undefined
      const { version, isLive } = cacher
      const isOld = version === undefined || isNewer(start.notOlderThan, version)
      if (!isLive || isOld) return undefined
      return cacher.watch({ ...options, state: 'with-end' })
    }
    cacher.readAs(reading)
    await cacher.open(patienceMs)
    if (exchange.signal.aborted) return undefined
    if (await cacher.precedesRestore(start.version, exchange.signal, patienceMs))
      return cacher.expired(start.version)
    // The store may lack objects that came and went between two lists; the API server has their
    // events.
    if (!cacher.isLive || !cacher.hasEventsAfter(start.version)) return undefined
    return cacher.watch({ ...options, from: start.version })
  }

  /** The client's own upstream watch, until it continues from the cacher. */
  async #continued(request: RecordedWatchRequest, passThrough: PassThrough): Promise<Reply> {
    const { exchange, info } = request
    const own = ownUpstream(exchange.signal)
    const reply = await passThrough(own.signal)
    // A cacher's own answer needs no continuation.
    if (reply.kind !== 'watch' || reply.from !== 'cloud') return reply
    const start = watchStart(info)
    const from = start.kind === 'after' ? start.version : undefined
    const recording = from && this.#recordAnew(request, from)
    let key: CollectionKey | undefined
    return continued(reply, {
      own,
      from,
      begin: recording && endOfWait(recording, exchange.signal),
      follower: (isCut) => {
        const representation = reply.representation()
        // The first event determines the representation, or there is none.
        key ??= collectionKey(exchange, info, representation)
        const isStored = this.#parts.store.version(key) !== undefined
        const isAccepted = exchange.representations.includes(representation)
        if (!isAccepted || !isStored || !requestCredentialsOf(exchange)) return undefined
        const served = this.#of(request, key, representation)
        const { cacher } = served
        cacher.readAs(this.#clientOf(exchange, served.clients))
        if (!isCut && !cacher.isLive) cacher.resume()
        return { cacher, options: this.#watchOptions(request, served) }
      },
    })
  }

  /**
   * Lists a collection in the place of a client that resumes its watch at `version`: its list was
   * recorded in a cache that has been lost since, and it may not list again before an offline
   * reboot. Only whole objects: Tables are read by people. Once in `listedMs`. Resolves when it is
   * recorded, or the list has failed; `undefined`: the collection is stored, or it is not listed.
   */
  #recordAnew(
    { exchange, info }: RecordedWatchRequest,
    version: ResourceVersion,
  ): Promise<void> | undefined {
    const { store, upstream, hooks } = this.#parts
    const [representation] = exchange.representations
    const client = requestCredentialsOf(exchange) && this.#clientOf(exchange, new Map())
    if (representation?.projection !== 'object' || !client) return undefined
    const isStored = exchange.representations.some(
      (each) => store.version(collectionKey(exchange, info, each)) !== undefined,
    )
    const key = collectionKey(exchange, info, representation)
    const id = collectionId(key)
    const listing = this.#listed.get(id)
    if (isStored || listing) return listing
    const of = { key, representation, store, upstream, client: () => client }
    const begun = storedListerWatcher(of)
      .list(version, this.#closing.signal)
      .catch((cause: unknown) => {
        const isRefused = cause instanceof RequestRefused
        if (!isRefused) this.#listed.delete(id)
        if (!this.#closing.signal.aborted) hooks.onFailed(key.gvr, cause, isRefused)
      })
    this.#listed.set(id, begun, { ttl: jitter(listedMs / 2, listedMs) })
    return begun
  }

  #watchOptions(
    { exchange, info }: RecordedWatchRequest,
    { clients }: ServedCacher,
  ): CacheWatchOptions {
    return {
      selected: { selection: everything, key: '' },
      bookmarks: isTrue(info.query.get('allowWatchBookmarks')),
      lastsMs: watchLifetimeMs(info, this.#parts.leastMs),
      signal: exchange.signal,
      onBegin: () => {
        const client = clients.get(exchange.component) ?? { exchange, open: 0 }
        clients.set(exchange.component, client)
        client.open += 1
        return {
          [Symbol.dispose]: () => {
            client.open -= 1
            if (client.open === 0) clients.delete(exchange.component)
          },
        }
      },
    }
  }

  #of(
    { exchange, info }: RecordedWatchRequest,
    key: CollectionKey,
    representation: Representation,
  ): ServedCacher {
    const id = collectionId(key)
    const existing = this.#served.get(id)
    if (existing) return existing
    const { store, upstream, connectivity, bounds, hooks } = this.#parts
    const clients: ServedCacher['clients'] = new Map()
    const isComparable = resourceVersion(store.version(key)) !== undefined
    const cacher: Cacher = new Cacher(
      {
        key,
        representation,
        store,
        upstream,
        connectivity: connectivity(exchange.credential),
        bounds,
        rank: reconnectRank(exchange, info),
        reflects: namesObjects(representation) && isComparable,
        lists: false,
        idleMs,
        hooks,
        onGrown: (bytes) => this.#bound(bytes),
        onIdle: () => {
          if (this.#served.get(id)?.cacher === cacher) this.#served.delete(id)
        },
      },
      this.#clientOf(exchange, clients),
    )
    const served = { cacher, clients }
    this.#served.set(id, served)
    return served
  }

  #clientOf(exchange: Exchange, clients: ServedCacher['clients']): ReflectorClient {
    const { identity, credential } = exchange
    const userAgent = exchange.headers.get('user-agent')
    return {
      ...(requestCredentialsOf(exchange) ?? { identity, credential }),
      ...(userAgent !== undefined && { userAgent }),
      comparesEvents: () =>
        [...clients.values()].some((client) =>
          this.#parts.recorder.comparesEvents(client.exchange),
        ),
    }
  }

  /**
   * Halves the largest logs until all fit. It measures them only where they may not fit: with
   * hundreds of cachers that would be most of the work of an event.
   */
  #bound(grownBy: number): void {
    const { mostBytes } = this.#parts
    this.#bytesAtMost += grownBy
    if (this.#bytesAtMost <= mostBytes) return
    while (this.bytes > mostBytes) {
      const [most] = [...this.#served.values()].toSorted((a, b) => b.cacher.bytes - a.cacher.bytes)
      if (!most) break
      most.cacher.shrink(most.cacher.bytes / 2)
    }
    this.#bytesAtMost = this.bytes
  }

  /** Ends all cache watchers and upstream watches. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    const all = [...this.#served.values()]
    this.#served.clear()
    await Promise.all(all.map(({ cacher }) => cacher[Symbol.asyncDispose]()))
  }
}

/**
 * Events that are recorded from the stored list on are sent after they are committed: a crash takes
 * none back.
 */
async function endOfWait(recording: Promise<void>, client: AbortSignalLike): Promise<void> {
  const over = Promise.withResolvers<void>()
  using _late = after(recordingMs, over.resolve)
  using _left = onAbort(client, over.resolve)
  await Promise.race([recording, over.promise])
}
