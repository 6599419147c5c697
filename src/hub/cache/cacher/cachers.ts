import { follow } from '../../../base/abort.ts'
import { jitter } from '../../../base/clock.ts'
import { lruCache } from '../../../base/lru-cache.ts'
import { everything } from '../../../api/codec/selection.ts'
import { because } from '../../../http/exchange/explanation.ts'
import {
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
import { RequestRefused } from '../../../api/reflector/reflector.ts'
import type { Representation } from '../../../api/request/representation.ts'
import { areValidListOptions, listOptionsOf } from '../../../api/request/list-options.ts'
import { isTrue, type ResourceRequest } from '../../../api/request/request-info.ts'
import { watchLifetimeMs } from '../../../api/request/watch-times.ts'
import { refusalOfNewer, refuseInvalidVersion } from '../../answers/requested-version.ts'
import { collectionKey } from '../../answers/keys.ts'
import { coveringCollection } from '../../answers/covering-collection.ts'
import { expiredWatch } from '../../answers/replies.ts'
import { isForPerson, withStaleness } from '../../answers/staleness.ts'
import type { CollectionKey, ObjectStore } from '../../store/store.ts'
import type { Recorder } from '../recorder.ts'
import { addressOf, textOf } from '../../store/log/address.ts'
import { watchStart, type ReadStart } from './read-start.ts'
import { Cacher, type CacherHooks, type CacheWatchOptions, type Connectivity } from './cacher.ts'
import type { LogBounds } from './event-log.ts'
import {
  storedListerWatcher,
  type ReflectorClient,
  type UpstreamHandlers,
} from './stored-lister-watcher.ts'

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

/** How long a client waits for the upstream watch to open. */
const patienceMs = 1_000

/**
 * For how long the watches of a collection that is not stored get no second 410: one that the store
 * has no room for would be listed for each watch.
 */
export const listedMs = 3_600_000

/** More collections than the components of a node watch; an identity may last for one token. */
const mostListed = 1_024

type StateStart = Extract<ReadStart, { readonly kind: 'state' | 'consistent' }>

interface RecordedWatchRequest {
  readonly exchange: Exchange
  readonly info: ResourceRequest
}

/** A cacher, and its clients by identity and component. */
interface ServedCacher {
  readonly cacher: Cacher
  readonly clients: Map<string, { readonly exchange: Exchange; open: number }>
}

/**
 * The cachers of all watched collections that are recorded: one for each collection in one
 * representation, and for each identity unless one copy is kept for all. One upstream watch serves
 * all clients that watch the same collection, and a client's watch outlives it.
 */
export class Cachers implements AsyncDisposable {
  readonly #parts: CachersParts
  readonly #served = new Map<string, ServedCacher>()
  /** Collections that were not stored when a client resumed a watch on them: it got 410. */
  readonly #listed = lruCache<string, true>(mostListed)
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
   * Answers while the hub is online. A watch that is recorded is answered from the cacher of its
   * collection alone: the one writer of what is stored. By `forward` only what is not recorded, and
   * what the API server or the store refuses.
   */
  online(exchange: Exchange, forward: Handler<Exchange>): Promise<Reply> {
    const request = this.#request(exchange)
    return request ? this.#watch(request, forward) : forward(exchange)
  }

  async #watch(request: RecordedWatchRequest, forward: Handler<Exchange>): Promise<Reply> {
    const { exchange, info } = request
    const start = watchStart(info)
    if (start.kind === 'delegated') return forward(exchange)
    const reply =
      start.kind === 'after'
        ? await this.#after(request, start.version, forward)
        : await this.#withState(request, start, forward)
    if (!reply) return forward(exchange)
    return reply.from === 'cloud' ? reply : because(reply, 'the cacher of the collection answers')
  }

  /**
   * Answers a watch from the stored state, and with the events that follow once the hub is online;
   * `undefined`: the collection is not stored. Throws the StatusError with which an API server
   * refuses a watch before it begins.
   */
  offline(exchange: Exchange, info: ResourceRequest): WatchReply | undefined {
    const { resourceVersion: requested, sendInitialEvents } = listOptionsOf(info.query, true, true)
    const { store } = this.#parts
    const representations = exchange.representations.filter(isWatchable)
    const source = coveringCollection({ ...exchange, representations }, info, store)
    // Without versions that compare no event can be said to follow.
    if (!source || resourceVersion(source.resourceVersion) === undefined) return undefined
    const served = this.#of({ exchange }, source.key, source.representation)
    const { cacher } = served
    cacher.readAs(this.#clientOf(exchange, served.clients))
    const stored = cacher.stored()
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
        ? ({ state: true } as const)
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

  /** The exchange, where it is a watch that is recorded. */
  #request(exchange: Exchange): RecordedWatchRequest | undefined {
    const { info } = exchange
    if (!info.isResource || info.verb !== 'watch' || !requestCredentialsOf(exchange))
      return undefined
    if (!areValidListOptions(info.query, true)) return undefined
    return this.#parts.recorder.recordsWatch(exchange) ? { exchange, info } : undefined
  }

  /**
   * The events after a version, or 410 where they are not known: then the client lists, and its
   * list is stored. `undefined`: the watch is refused, or the list was not stored either.
   */
  async #after(
    request: RecordedWatchRequest,
    version: string,
    forward: Handler<Exchange>,
  ): Promise<Reply | undefined> {
    const { exchange, info } = request
    const { store } = this.#parts
    const representation = this.#storedRepresentation(request)
    if (!representation) return this.#toList(request, version)
    const key = collectionKey(exchange, info, representation)
    if (resourceVersion(store.version(key)) === undefined) return undefined
    const reading = this.#clientOf(exchange, new Map())
    const known = this.#cacherOf(key)
    const beside = refusalBeside(known, reading, exchange, forward)
    const refusal = beside && (await beside)
    if (refusal) return refusal
    const served = this.#of(request, key, representation)
    const { cacher } = served
    cacher.readAs(this.#clientOf(exchange, served.clients))
    await cacher.open(patienceMs)
    if (cacher.isRefused || exchange.signal.aborted) return undefined
    return (
      cacher.watch({ ...this.#watchOptions(request, served), from: version }) ??
      cacher.expired(version)
    )
  }

  /**
   * 410 for a watch on a collection that is not stored: its list was recorded in a cache that has
   * been lost since, or under another identity. Once in `listedMs`; never for a person, whose
   * command would end.
   */
  #toList({ exchange, info }: RecordedWatchRequest, version: string): WatchReply | undefined {
    const [representation] = exchange.representations
    if (!representation || isForPerson(exchange)) return undefined
    const id = textOf(addressOf(collectionKey(exchange, info, representation)))
    if (this.#listed.has(id)) return undefined
    this.#listed.set(id, true, { ttl: jitter(listedMs / 2, listedMs) })
    return expiredWatch(representation, tooOld(version))
  }

  /**
   * The state and the events after it. Where no cacher with this credential has a state that is new
   * enough, that of a WatchList is listed in the client's place. `undefined`: the list is refused,
   * fails or is not stored.
   */
  async #withState(
    request: RecordedWatchRequest,
    start: StateStart,
    forward: Handler<Exchange>,
  ): Promise<Reply | undefined> {
    const { exchange, info } = request
    const { store } = this.#parts
    const [preferred] = exchange.representations
    const representation = this.#storedRepresentation(request) ?? preferred
    if (!representation) return undefined
    const key = collectionKey(exchange, info, representation)
    const known = this.#cacherOf(key)
    const reading = this.#clientOf(exchange, new Map())
    const isCurrent =
      start.kind === 'state' &&
      known?.isLive &&
      known.usesCredentialOf(reading) &&
      known.version !== undefined &&
      !isNewer(start.notOlderThan, known.version)
    if (!isCurrent) {
      const isRefused = known?.isRefused && known.usesCredentialOf(reading)
      // Reflectors begin with a list or with a WatchList.
      if (isRefused || !isTrue(info.query.get('sendInitialEvents'))) return undefined
      const least = start.kind === 'state' ? (start.notOlderThan ?? '0') : ''
      const listed = await this.#list(exchange, key, representation, reading, least)
      const version = resourceVersion(store.version(key))
      if (listed === undefined || version === undefined || isNewer(listed, version))
        return undefined
      if (start.kind === 'state' && isNewer(start.notOlderThan, version)) return undefined
      const beside = refusalBeside(this.#cacherOf(key), reading, exchange, forward)
      const refusal = beside && (await beside)
      if (refusal) return refusal
    }
    const served = this.#of(request, key, representation)
    if (!isCurrent) served.cacher.readAs(this.#clientOf(exchange, served.clients))
    return served.cacher.watch({ ...this.#watchOptions(request, served), state: true })
  }

  /** The version of the list; `undefined` where there is none. */
  async #list(
    exchange: Exchange,
    key: CollectionKey,
    representation: Representation,
    reading: ReflectorClient,
    least: '' | '0' | ResourceVersion,
  ): Promise<string | undefined> {
    const { upstream, hooks } = this.#parts
    const of = { key, representation, upstream, client: () => reading }
    const ending = new AbortController()
    using _over = { [Symbol.dispose]: () => ending.abort() }
    using _client = follow(exchange.signal, ending)
    using _hub = follow(this.#closing.signal, ending)
    try {
      return await storedListerWatcher(of).list(least, ending.signal)
    } catch (cause) {
      // Perhaps none has that version: all API servers lag, or the cluster was restored.
      if (cause instanceof UnusableAnswer && least !== '' && least !== '0')
        return this.#list(exchange, key, representation, reading, '')
      const isRefused = cause instanceof RequestRefused
      if (!ending.signal.aborted) hooks.onFailed(key.gvr, cause, isRefused)
      return undefined
    }
  }

  /**
   * The representation in which the collection is stored. Only the API server knows whether it
   * answers with less than is preferred.
   */
  #storedRepresentation({ exchange, info }: RecordedWatchRequest): Representation | undefined {
    const [preferred] = exchange.representations
    return exchange.representations.find(
      (each) =>
        each.projection === preferred?.projection &&
        this.#parts.store.version(collectionKey(exchange, info, each)) !== undefined,
    )
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
        const name = JSON.stringify([exchange.identity, exchange.component])
        const client = clients.get(name) ?? { exchange, open: 0 }
        clients.set(name, client)
        client.open += 1
        return {
          [Symbol.dispose]: () => {
            client.open -= 1
            if (client.open === 0) clients.delete(name)
          },
        }
      },
    }
  }

  #cacherOf(key: CollectionKey): Cacher | undefined {
    return this.#served.get(textOf(addressOf(this.#parts.store.copyOf(key))))?.cacher
  }

  #of(
    { exchange }: Pick<RecordedWatchRequest, 'exchange'>,
    callers: CollectionKey,
    representation: Representation,
  ): ServedCacher {
    const { store, upstream, connectivity, bounds, hooks } = this.#parts
    const key = store.copyOf(callers)
    const id = textOf(addressOf(key))
    const existing = this.#served.get(id)
    if (existing) return existing
    const clients: ServedCacher['clients'] = new Map()
    const cacher: Cacher = new Cacher(
      {
        key,
        representation,
        store,
        upstream,
        connectivity,
        bounds,
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
    const { identity, credential, component } = exchange
    const userAgent = exchange.headers.get('user-agent')
    return {
      ...(requestCredentialsOf(exchange) ?? { identity, credential }),
      ...(userAgent !== undefined && { userAgent }),
      component,
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

/** Watches of Tables pass through. */
const isWatchable = ({ projection }: Representation): boolean => projection !== 'table'

const tooOld = (version: string): string => `too old resource version: ${version}`

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
  if (reply.kind !== 'watch' || reply.status !== 200 || reply.from === 'cache') return reply
  ending.abort()
  await reply.events[Symbol.asyncIterator]().return?.()
  return undefined
}
