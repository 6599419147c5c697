import type { AbortSignalLike } from '../../../base/abort.ts'
import { after, within } from '../../../base/clock.ts'
import { objectKind } from '../../../api/codec/list.ts'
import { MalformedBody } from '../../../api/codec/malformed-body.ts'
import { isPartial } from '../../../api/codec/partial.ts'
import type { Selection } from '../../../api/codec/selection.ts'
import { isObjectEvent, versionAfter, type WatchEvent } from '../../../api/codec/watch.ts'
import {
  UnusableAnswer,
  type Credential,
  type WatchReply,
} from '../../../http/exchange/exchange.ts'
import type { GVK, GVR } from '../../../api/kube/gvk.ts'
import { mediaType } from '../../../api/kube/media-type.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import {
  ListNotHeld,
  ResourceExpired,
  Reflector,
  RequestRefused,
  type ListerWatcher,
} from '../../../api/reflector/reflector.ts'
import type { Representation } from '../../../api/request/representation.ts'
import { answerHeaders, expiredWatch } from '../../answers/replies.ts'
import type { CollectionKey, ObjectStore, StoredList } from '../../store/store.ts'
import type { RecorderHooks } from '../recordable.ts'
import { CacheWatcher, type CacheWatcherParts, type WatcherEnd } from './cache-watcher.ts'
import { EventLog, type EventMemory, type PreviousStates } from './event-log.ts'
import {
  storedListerWatcher,
  untilReachable,
  type Connectivity,
  type ReflectorClient,
  type UpstreamHandlers,
  type UpstreamWatch,
} from './stored-lister-watcher.ts'

export interface CacherHooks {
  /** The change in the number of upstream watches. */
  readonly onUpstreamWatches: (difference: number) => void
  readonly onWatchers: (difference: number) => void
  /** The hub ended a cache watcher while its client was still connected. */
  readonly onWatcherEnded: (reason: Exclude<WatcherEnd, 'done'>) => void
  /** The upstream watch failed. */
  readonly onFailed: (gvr: GVR, cause: unknown) => void
}

interface CacherParts {
  readonly key: CollectionKey
  readonly representation: Representation
  readonly store: ObjectStore
  readonly upstream: UpstreamHandlers
  readonly records: Pick<RecorderHooks, 'countOf' | 'onStoreFailure' | 'onMalformed'>
  readonly connectivity: (credential: Credential) => Connectivity
  /** How long it stays open without cache watchers. */
  readonly idleMs: number
  readonly hooks: CacherHooks
  /** That of its events. */
  readonly memory: EventMemory
  /** Called when it has had no cache watcher for `idleMs`, and is over. */
  readonly onIdle: () => void
}

export interface CacheWatchOptions {
  /** With the state first; absent: the events after `from`. */
  readonly state?: true
  readonly from?: string
  readonly selection: Selection
  readonly bookmarks: boolean
  readonly lastsMs: number
  readonly signal: AbortSignalLike
  /** Whether it needs the previous state of each object. */
  readonly comparesEvents?: boolean
}

/**
 * The watch cache of one collection in one representation, as apiserver's pkg/storage/cacher: the
 * stored objects, a log of the latest events and, while there are cache watchers, one upstream
 * watch. When that watch is cut, the cache watchers stay, and it resumes at
 * their version. Where the API server has forgotten that version, as after its restart, the cacher
 * lists the collection, and the cache watchers stay if nothing has changed. They end where it
 * cannot resume: with 410 where something has changed, or the cluster was restored from a backup;
 * cleanly where the API server refuses, or the store does not take the events or the list: then the
 * API server answers their clients.
 */
export class Cacher implements AsyncDisposable {
  readonly key: CollectionKey
  readonly #parts: CacherParts
  readonly #watchers = new Set<CacheWatcher>()
  readonly #listerWatcher
  #client: ReflectorClient
  #log: EventLog | undefined
  #gvk: GVK = { group: '', version: '', kind: '' }
  /** The version that the upstream watch has reached. */
  #reached = ''
  readonly #recorded: { amount: number }
  /** Whether a cache watcher has needed the previous states: its events have them since. */
  #comparesEvents = false
  /** Aborts with a reason when no event follows in the log. */
  #logEnded = new AbortController()
  #running: { readonly ending: AbortController; readonly done: Promise<void> } | undefined
  #isRefused = false
  #isWatched = false
  /** Resolves when the upstream watch is open, or has failed to open. */
  #opened = Promise.withResolvers<void>()
  #idle: Disposable | undefined
  #closed = false

  constructor(parts: CacherParts, reading: ReflectorClient) {
    this.#parts = parts
    this.key = parts.key
    this.#client = reading
    this.#recorded = parts.records.countOf('watch')
    this.#listerWatcher = storedListerWatcher({ ...parts, client: () => this.#client })
    this.#renewIdle()
  }

  /**
   * The version of the committed state; `undefined`: none is stored. A write in progress does not
   * count: an answer that names its version would be older.
   */
  get version(): string | undefined {
    return this.#parts.store.version(this.key)
  }

  /** The number of its cache watchers. */
  get watchers(): number {
    return this.#watchers.size
  }

  /** The memory of its events. */
  get bytes(): number {
    return this.#log?.bytes ?? 0
  }

  /** Whether an upstream watch keeps the stored state up to date. */
  get isLive(): boolean {
    return this.#isWatched
  }

  /** Whether it has an upstream watch, or is about to open one. */
  get isRunning(): boolean {
    return this.#running !== undefined
  }

  /** Whether its upstream watch uses the credential of this client. */
  usesCredentialOf({ authorization }: ReflectorClient): boolean {
    return this.#client.authorization === authorization
  }

  /**
   * Sets the client for the next requests: the newest credential of an identity counts. An upstream
   * watch stays that of the identity that it began with.
   */
  readAs(reading: ReflectorClient): void {
    if (this.#running && this.#client.identity !== reading.identity) return
    // What was refused to another credential says nothing of this one.
    if (!this.usesCredentialOf(reading)) this.#isRefused = false
    this.#client = reading
  }

  get stored(): StoredList | undefined {
    return this.#parts.store.list(this.key)
  }

  /** Drops the oldest events in memory until the rest takes `bytes` at most. */
  shrink(bytes: number): void {
    this.#log?.shrink(bytes)
  }

  /** Whether its last upstream watch was refused, by the API server or the store. */
  get isRefused(): boolean {
    return !this.#running && this.#isRefused
  }

  /**
   * Opens the upstream watch, unless it is open or was refused. Resolves when it is open or
   * has failed to open, after `patienceMs` at the latest.
   */
  async open(patienceMs: number): Promise<void> {
    if (!this.isRefused) this.#run()
    // Its client waits: it is not idle.
    this.#renewIdle()
    if (this.#isWatched) return
    await within(patienceMs, this.#opened.promise)
  }

  /**
   * Opens the upstream watch, unless it is open. Every cache watcher calls this when it begins, and
   * the log ends with the reflector: so none waits for events that no reflector brings.
   */
  #run(): void {
    if (this.#running || this.#closed) return
    const ending = new AbortController()
    this.#opened = Promise.withResolvers<void>()
    const done = this.#reflect(ending.signal).finally(() => {
      this.#running = undefined
      this.#opened.resolve()
      this.#isRefused = !ending.signal.aborted
      if (this.#log) this.#end('over')
    })
    this.#running = { ending, done }
  }

  async #reflect(signal: AbortSignal): Promise<void> {
    const { key, connectivity, records, hooks } = this.#parts
    const stored = this.#listerWatcher
    let upstream: UpstreamWatch | undefined
    const listerWatcher: ListerWatcher = {
      list: async (ending) => {
        upstream = undefined
        const listed = await stored.list('0', ending)
        // The store does not take the list, and the API server has forgotten what follows the log:
        // the next list may be taken, unless the store keeps one that is older. Of an API server
        // that lags behind the one that has forgotten it the list is as old as the log itself.
        if (this.version === undefined) this.#end('over')
        else if (isNewer(listed, this.version))
          throw new RequestRefused(0, 'the collection stays at its old version')
        else this.#listed()
      },
      watch: async (options, ending) => {
        if (!this.#log) this.#begin()
        upstream = await stored.watch(options, ending)
        this.#reached = options.resourceVersion
        return upstream.events
      },
    }
    const reflector = new Reflector(
      {
        listerWatcher,
        version: () => this.#resumeVersion(),
        waitUntilReachable: (ending) =>
          untilReachable(() => connectivity(this.#client.credential), ending),
      },
      {
        onOpen: () => {
          this.#watched(true)
          this.#opened.resolve()
        },
        onEvents: (events) => this.#take(events, upstream),
        onClosed: () => this.#watched(false),
        onFailed: (cause) => {
          if (cause instanceof MalformedBody && upstream)
            records.onMalformed(cause, upstream.exchange)
          // A list that the store does not take is tried again, perhaps much later.
          if (cause instanceof ListNotHeld) this.#opened.resolve()
          hooks.onFailed(key.gvr, cause)
        },
      },
    )
    await reflector.run(signal)
  }

  #watched(is: boolean): void {
    if (is === this.#isWatched) return
    this.#isWatched = is
    this.#parts.hooks.onUpstreamWatches(is ? 1 : -1)
  }

  /**
   * The log goes on at a list that confirms the stored state. After one that brings changes, whose
   * events are unknown, a new log begins.
   */
  #listed(): void {
    const log = this.#log
    const stored = this.stored
    if (!log || !stored || !isNewer(stored.resourceVersion, log.version)) return
    const { resourceVersion: version, changedAt } = stored
    if (changedAt === undefined || isNewer(changedAt, log.version)) return this.#end('expired')
    log.skip(version)
    for (const watcher of this.#watchers) watcher.skip()
  }

  /** Begins a log at the stored version. False where nothing is stored. */
  #begin(): boolean {
    const stored = this.stored
    if (stored === undefined) return false
    this.#gvk = objectKind(stored.gvk)
    const { resourceVersion: version, changedAt, listedAt } = stored
    const tail = isNewer(listedAt, changedAt) ? listedAt : changedAt
    this.#log = new EventLog(version, tail, this.#parts.memory)
    return true
  }

  /**
   * The version at which the upstream watch resumes: that of the log. The API server sends again
   * what else the store has, without the previous states that show whether an object leaves a
   * selection.
   */
  #resumeVersion(): string | undefined {
    const [log, stored] = [this.#log, this.version]
    if (log && isNewer(log.version, stored)) {
      // A client has listed an API server whose versions began anew.
      this.#end('expired')
      return stored
    }
    if (!log || !isNewer(stored, log.version)) return log?.version ?? stored
    if (!this.#comparesEvents || !isNewer(this.stored?.changedAt, log.version)) return log.version
    this.#end('over')
    return stored
  }

  /** Resolves once those that arrived together are committed together, and in the log. */
  async #take(events: readonly WatchEvent[], upstream: UpstreamWatch | undefined): Promise<void> {
    // A server may answer with whole objects in place of their metadata.
    const isPart =
      this.#parts.representation.projection === 'object' || (upstream && isPartial(upstream.gvk()))
    if (!isPart && events.some(isObjectEvent))
      throw new RequestRefused(200, 'answered in another representation')
    const isUnread = events.every(({ type }) => type === 'UNREAD')
    const previous = isUnread ? [] : await this.#record(events)
    const log = this.#log
    if (log && isUnread) return this.#publish(log, events, previous)
    const version = versionAfter(events)
    if (log === undefined || version === undefined) throw new ResourceExpired()
    const stored = this.version
    if (stored === undefined || isNewer(version, stored)) {
      throw new RequestRefused(0, 'the store does not take its events')
    }
    // No event that follows the log can be older.
    if (isNewer(log.version, version))
      throw new UnusableAnswer('the upstream watch sent a past version')
    this.#publish(log, events, previous)
  }

  /**
   * Resolves to the previous states where due. The store takes in what follows the stored version
   * without a gap.
   */
  async #record(events: readonly WatchEvent[]): Promise<PreviousStates> {
    const { store, key, records } = this.#parts
    const options = { since: this.#reached, previous: this.#comparesEvents }
    this.#reached = versionAfter(events) ?? this.#reached
    try {
      const previous = await store.apply(key, events, options)
      this.#recorded.amount++
      return previous
    } catch (cause) {
      records.onStoreFailure(cause)
      return []
    }
  }

  #publish(log: EventLog, events: readonly WatchEvent[], previous: PreviousStates): void {
    const { end } = log
    log.append(events, previous)
    if (log.end === end) return
    for (const watcher of this.#watchers) watcher.wake()
  }

  /** The store was emptied: its clients list again. */
  restart(): void {
    this.#end('expired')
    this.#running?.ending.abort()
  }

  /** Ends all cache watchers, at random times. */
  #end(reason: 'over' | 'expired'): void {
    this.#log?.close()
    this.#log = undefined
    const over = this.#logEnded
    this.#logEnded = new AbortController()
    over.abort(reason)
  }

  /** `undefined`: the events after the client's version are not known here. */
  watch(options: CacheWatchOptions): WatchReply | undefined {
    if (this.#closed || (this.#log === undefined && !this.#begin())) return undefined
    const log = this.#log
    const start = log && this.#start(log, options)
    if (log === undefined || start === undefined) return undefined
    const { representation } = this.#parts
    const { encoding } = representation
    // A client that selects only some of the objects, as offline from a wider collection, does too.
    if (options.comparesEvents || !options.selection.everything) this.#comparesEvents = true
    const watcher = new CacheWatcher({
      ...options,
      ...start,
      log,
      gvk: this.#gvk,
      encoding,
      logEnded: this.#logEnded.signal,
    })
    return {
      kind: 'watch',
      from: 'cache',
      status: 200,
      headers: answerHeaders(mediaType(encoding, true)),
      representation: () => representation,
      gvk: () => this.#gvk,
      events: watcher.events(
        () => this.#joined(watcher),
        (end) => this.#left(watcher, end),
      ),
      isShared: true,
    }
  }

  #joined(watcher: CacheWatcher): void {
    this.#watchers.add(watcher)
    this.#renewIdle()
    this.#parts.hooks.onWatchers(1)
    this.#run()
  }

  #left(watcher: CacheWatcher, end: WatcherEnd): void {
    const { hooks } = this.#parts
    if (end !== 'done') hooks.onWatcherEnded(end)
    this.#watchers.delete(watcher)
    hooks.onWatchers(-1)
    this.#renewIdle()
  }

  #start(
    log: EventLog,
    { state, from, selection }: CacheWatchOptions,
  ): Pick<CacheWatcherParts, 'cursor' | 'from' | 'backfill'> | undefined {
    if (state !== undefined) {
      const stored = this.stored
      if (stored === undefined) return undefined
      const { batches, resourceVersion } = stored
      // The collection was removed, and listed from an API server that lags.
      if (isNewer(log.version, resourceVersion)) return undefined
      return { cursor: log.end, from: resourceVersion, backfill: batches }
    }
    if (from === undefined) return undefined
    const cursor = log.after(from)
    // The events in memory may lack the previous states that a selection needs.
    const isComplete = cursor === log.end || selection.everything
    return cursor === undefined || !isComplete ? undefined : { cursor, from }
  }

  /** The answer to a watch from a version that is no longer known: its client has to list. */
  expired(from: string): WatchReply {
    return expiredWatch(this.#parts.representation, tooOld(from, this.version ?? ''))
  }

  /** It is over after `idleMs` without cache watchers: the next client gets another. */
  #renewIdle(): void {
    this.#idle?.[Symbol.dispose]()
    if (this.#watchers.size > 0 || this.#closed) return
    this.#idle = after(this.#parts.idleMs, () => {
      this.#parts.onIdle()
      void this[Symbol.asyncDispose]()
    })
  }

  /** Ends its cache watchers and its upstream watch. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    this.#idle?.[Symbol.dispose]()
    this.#end('over')
    this.#running?.ending.abort()
    await this.#running?.done
  }
}

const tooOld = (from: string, version: string): string =>
  `too old resource version: ${from} (${version})`
