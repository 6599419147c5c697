import { onAbort } from '../../../base/abort.ts'
import { within } from '../../../base/clock.ts'
import { because } from '../../../http/exchange/explanation.ts'
import type {
  Exchange,
  Handler,
  ObjectReply,
  Reply,
  WatchReply,
} from '../../../http/exchange/exchange.ts'
import type { GVR } from '../../../api/kube/gvk.ts'
import {
  compareVersions,
  newestVersion,
  resourceVersion,
  type ResourceVersion,
} from '../../../api/kube/resource-version.ts'
import { notFound, StatusError, tooLargeResourceVersion } from '../../../api/kube/status.ts'
import { nodeIdentity, sharedIdentity } from '../../../api/request/identity.ts'
import { watchLifetimeMs } from '../../../api/request/watch-times.ts'
import { listReply, objectReply } from '../../answers/replies.ts'
import { refuseNewerGet } from '../../answers/requested-version.ts'
import { objectKey } from '../../answers/keys.ts'
import { offlineList } from '../../answers/offline-list.ts'
import { neverCached } from '../../answers/offline-reads.ts'
import {
  mayHaveLeftSelection,
  newestCoveringVersion,
  storedList,
  type CoveringCollection,
} from '../../answers/covering-collection.ts'
import { isForPerson, withStaleness } from '../../answers/staleness.ts'
import type { ObjectStore } from '../../store/store.ts'
import type { AccessReviews } from './access-reviews.ts'
import { listStart, watchStart, type ReadStart } from '../cacher/read-start.ts'
import { ownVersion, sharedKey, takesBookmarks, type SharedRead } from './shared-read.ts'
import type { SharedRecords } from './shared-records.ts'
import {
  Cacher,
  type CacherHooks,
  type CacheWatchOptions,
  type Connectivity,
} from '../cacher/cacher.ts'
import type { LogBounds } from '../cacher/event-log.ts'
import { reconnectRank } from '../cacher/reconnect-order.ts'
import { mayListAndWatch } from './self-subject-access-review.ts'
import type { UpstreamHandlers } from '../cacher/stored-lister-watcher.ts'
import { RecentWatchers } from './recent-watchers.ts'

export interface SharedCachersParts {
  readonly store: ObjectStore
  readonly upstream: UpstreamHandlers
  readonly access: AccessReviews
  readonly records: SharedRecords
  readonly connectivity: Connectivity
  /** The shortest lifetime of a watch whose client set no timeout. */
  readonly leastMs: number
  /** The bounds of each collection's events in memory. */
  readonly bounds: LogBounds
  /** The upstream watch closes after so long without watchers; default 5 minutes. */
  readonly idleMs?: number
  readonly hooks: CacherHooks
}

const idleMs = 5 * 60_000

interface SharedCacher {
  readonly cacher: Cacher
  readonly watchers: RecentWatchers
}

/** The hub reads shared collections with the node's credentials, for all who may read them. */
const asHub = {
  identity: sharedIdentity,
  credential: 'node',
  comparesEvents: () => true,
} as const

const fromSharedCacher = 'the cacher that components share is new enough'

/** How long a request waits for a review or an upstream watch before it is forwarded instead. */
const patienceMs = 1_000

/**
 * The cachers of the collections that all components of a node share: one upstream watch for each
 * collection and representation. A cacher answers a caller where both the hub and the caller may
 * list and watch the whole collection. It gives no answer that an API server would refuse, and none
 * older than the API server's.
 */
export class SharedCachers implements AsyncDisposable {
  readonly #parts: SharedCachersParts
  readonly #collections = new Map<string, SharedCacher>()

  constructor(parts: SharedCachersParts) {
    this.#parts = parts
  }

  /** All cachers. */
  get all(): readonly Cacher[] {
    return [...this.#collections.values()].map(({ cacher }) => cacher)
  }

  /** The memory of all collections' events. */
  get bytes(): number {
    return [...this.#collections.values()].reduce((sum, { cacher }) => sum + cacher.bytes, 0)
  }

  /** Answers while the hub is online: from a shared cacher, or by `next`. */
  online(exchange: Exchange, next: Handler<Exchange>): Promise<Reply> {
    const read = this.#parts.records.read(exchange)
    return read && read.verb !== 'get' ? this.#online(read, next) : next(exchange)
  }

  async #online(read: SharedRead, next: Handler<Exchange>): Promise<Reply> {
    const { exchange } = read
    if (read.verb === 'list') {
      const list = await this.#list(read)
      return list ? because(list, fromSharedCacher) : next(exchange)
    }
    if (!(await this.#inTime(this.#isAllowed(read)))) return next(exchange)
    const collection = this.#of(read)
    const { watchers } = collection
    // A watch with a selector is cheaper than the whole collection while it is the only one.
    const isAlone = !read.selection.selection.everything && !watchers.hasOthers(read.watcher)
    const reply = isAlone ? undefined : await this.#watch(read, collection)
    if (reply) return because(reply, fromSharedCacher)
    const waiting = watchers.join(read.watcher)
    onAbort(exchange.signal, () => waiting[Symbol.dispose]())
    return next(exchange)
  }

  /**
   * Opens the upstream watch of the collection that `exchange` reads, if it may be shared, so that
   * its cacher can answer. Resolves when it is open or has failed, and after `patienceMs` at the
   * latest.
   */
  async prepare(exchange: Exchange, patienceMs: number): Promise<void> {
    const read = this.#parts.records.read(exchange)
    if (read && (await this.#isAllowed(read))) await this.#of(read).cacher.open(patienceMs)
  }

  /**
   * Answers while the hub is offline: where the shared collection is newer than the caller's last
   * observed version, and the last review allowed the caller to read it. `undefined`: the caller's
   * own records answer.
   */
  offline(exchange: Exchange): Reply | undefined {
    const read = this.#parts.records.read(exchange)
    if (read === undefined || !this.#parts.records.wasAllowed(read)) return undefined
    const reply = this.#offline(read)
    return reply && because(reply, 'the collection that components share is newer than their own')
  }

  #offline(read: SharedRead): Reply | undefined {
    const { exchange } = read
    const { cacher, watchers } = this.#of(read)
    const version = resourceVersion(cacher.version)
    if (version === undefined) return undefined
    if (read.verb === 'get') return this.#object(read, cacher, version)
    const own = ownVersion(read, this.#parts.store, 'committedVersion')
    const order = own === undefined ? 1 : compareVersions(version, own)
    // Where both are at the same version a watch is served from here, to outlast the outage.
    if (order < 0 || (order === 0 && read.verb === 'list')) return undefined
    if (read.verb === 'list') {
      return offlineList(exchange, read.info, sourceOf(cacher, read, version), this.#parts.store)
    }
    const reply = this.#watchOffline(read, { cacher, watchers }, version)
    return reply && aged(reply, exchange, cacher.confirmedAt)
  }

  #watchOffline(
    read: SharedRead,
    collection: SharedCacher,
    version: ResourceVersion,
  ): WatchReply | undefined {
    const start = watchStart(read.info)
    if (start.kind === 'delegated') return undefined
    if (
      start.kind === 'state' &&
      start.notOlderThan &&
      compareVersions(start.notOlderThan, version) > 0
    ) {
      throw new StatusError(tooLargeResourceVersion(start.notOlderThan, version))
    }
    const { cacher } = collection
    const watch = cacher.watch({ ...this.#watchOptions(read, collection), ...beginning(start) })
    return watch ?? (start.kind === 'after' ? cacher.expired(start.version) : undefined)
  }

  /** Ends the cachers of resources outside the scope; to be called when `scope` has changed. */
  rescope(): void {
    const scope = this.#parts.records.scope()
    for (const [id, { cacher }] of this.#collections) {
      if (scope.some((gvr) => idOf(gvr, cacher.key.partition.representation) === id)) continue
      this.#collections.delete(id)
      void cacher[Symbol.asyncDispose]()
    }
  }

  #of({ gvr, representation, exchange, info }: SharedRead): SharedCacher {
    const id = idOf(gvr, representation.key)
    const known = this.#collections.get(id)
    if (known) return known
    const { store, upstream, connectivity, bounds, hooks } = this.#parts
    const most = this.#parts.idleMs ?? idleMs
    const cacher = new Cacher(
      {
        key: sharedKey({ gvr, representation }),
        representation,
        store,
        upstream,
        connectivity,
        bounds,
        rank: reconnectRank(exchange, info),
        reflects: true,
        idleMs: most,
        hooks,
      },
      asHub,
    )
    const collection = { cacher, watchers: new RecentWatchers(most) }
    this.#collections.set(id, collection)
    return collection
  }

  async #isAllowed({ credentials, gvr }: SharedRead): Promise<boolean> {
    const hub = { identity: nodeIdentity, credential: 'node' } as const
    const verdicts = await Promise.all(
      (credentials.credential === 'node' ? [hub] : [hub, credentials]).map((each) =>
        this.#parts.access.of(each.identity, gvr, () =>
          mayListAndWatch(this.#parts.upstream.unrecorded, each, gvr),
        ),
      ),
    )
    return verdicts.every((allowed) => allowed === true)
  }

  /** False where the verdict comes too late. */
  async #inTime(verdict: Promise<boolean>): Promise<boolean> {
    return (await within(patienceMs, verdict)) ?? false
  }

  /** A list that need not be consistent. */
  async #list(read: SharedRead): Promise<Reply | undefined> {
    const cacher = this.#collections.get(idOf(read.gvr, read.representation.key))?.cacher
    const start = listStart(read.info)
    if (!cacher?.isLive || start.kind !== 'state') return undefined
    if (!(await this.#inTime(this.#isAllowed(read))) || !cacher.isLive) return undefined
    const { store } = this.#parts
    const version = resourceVersion(cacher.version)
    const least = newestVersion([start.notOlderThan, ownVersion(read, store, 'version')])
    const isOld = version === undefined || (least && compareVersions(version, least) < 0)
    if (isOld) return undefined
    const stored = storedList(sourceOf(cacher, read, version), store)
    return stored && listReply(read.representation, stored)
  }

  /** A watch from the cacher, whose upstream watch is opened for it. */
  async #watch(read: SharedRead, collection: SharedCacher): Promise<WatchReply | undefined> {
    const start = watchStart(read.info)
    // Counted already while the upstream watch opens, so that a second watcher is not alone.
    const { cacher, watchers } = collection
    using _waiting = watchers.join(read.watcher)
    await cacher.open(patienceMs)
    if (read.exchange.signal.aborted || !cacher.isLive) return undefined
    if (start.kind === 'delegated' || start.kind === 'consistent') return undefined
    if (start.kind === 'state') {
      const version = resourceVersion(cacher.version)
      const least = newestVersion([
        start.notOlderThan,
        ownVersion(read, this.#parts.store, 'version'),
      ])
      if (version === undefined || (least && compareVersions(version, least) < 0)) return undefined
    }
    const watch = cacher.watch({ ...this.#watchOptions(read, collection), ...beginning(start) })
    return watch ?? (start.kind === 'after' ? cacher.expired(start.version) : undefined)
  }

  #watchOptions(read: SharedRead, { watchers }: SharedCacher): CacheWatchOptions {
    const { selection, watcher, exchange } = read
    return {
      selected: selection,
      onBegin: () => watchers.join(watcher),
      bookmarks: takesBookmarks(read),
      lastsMs: watchLifetimeMs(read.info, this.#parts.leastMs),
      signal: exchange.signal,
    }
  }

  #object(read: SharedRead, { key }: Cacher, version: ResourceVersion): ObjectReply | undefined {
    const { exchange, info, representation, gvr } = read
    const { store } = this.#parts
    const name = info.name ?? ''
    const stored = store.get({
      partition: key.partition,
      gvr,
      namespace: info.namespace ?? '',
      name,
    })
    if (stored === undefined) return undefined
    const own = exchange.representations.flatMap(
      (each) => store.get(objectKey(exchange, info, each)) ?? [],
    )
    const newestOwn = newestVersion(
      own.map((each) => (each === 'absent' ? undefined : each.object.resourceVersion)),
    )
    // An object that is absent at the shared version was deleted, unless it was read at a later
    // one.
    const known = stored === 'absent' ? version : resourceVersion(stored.object.resourceVersion)
    const isNews = newestOwn === undefined || (known && compareVersions(known, newestOwn) > 0)
    if (!isNews) return undefined
    if (mayHaveLeftSelection(exchange, info, store, version)) {
      if (newestOwn === undefined || isForPerson(exchange)) return undefined
      // The state in the shared collection may be out of date, and the caller's own is.
      throw neverCached()
    }
    // The newer of two collections decides whether the object exists.
    const gone = own.includes('absent') && newestOwn === undefined
    if (gone && !isNewer(version, newestCoveringVersion(exchange, info, store))) return undefined
    refuseNewerGet(info, stored === 'absent' ? version : stored.confirmedVersion)
    if (stored === 'absent') throw new StatusError(notFound({ ...gvr, name }))
    return aged(objectReply(representation, stored), exchange, stored.confirmedAt)
  }

  /** Ends all cache watchers and upstream watches. */
  async [Symbol.asyncDispose](): Promise<void> {
    const collections = [...this.#collections.values()]
    this.#collections.clear()
    await Promise.all(collections.map(({ cacher }) => cacher[Symbol.asyncDispose]()))
  }
}

/** With which events a cacher begins. */
const beginning = (
  start: Exclude<ReadStart, { kind: 'delegated' }>,
): Pick<CacheWatchOptions, 'state' | 'from'> =>
  start.kind === 'after'
    ? { from: start.version }
    : { state: start.bookmarkAtEnd ? 'with-end' : 'without-end' }

const idOf = ({ group, version, resource }: GVR, representation: string): string =>
  JSON.stringify([group, version, resource, representation])

const isNewer = (version: ResourceVersion, than: ResourceVersion | undefined): boolean =>
  than === undefined || compareVersions(version, than) > 0

/** The same answer, with the headers that state its age. */
const aged = <R extends ObjectReply | WatchReply>(
  reply: R,
  exchange: Exchange,
  confirmedAt: number,
): R => ({ ...reply, headers: withStaleness(reply.headers, exchange, confirmedAt) })

/** The part of the shared collection that is read. */
const sourceOf = (
  { key }: Cacher,
  { representation, selection }: SharedRead,
  version: ResourceVersion,
): CoveringCollection => ({
  representation,
  key,
  resourceVersion: version,
  ...(!selection.selection.everything && { selection: selection.selection }),
})
