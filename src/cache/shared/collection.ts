import type { Signal } from '../../base/abort.ts'
import { mapBatches } from '../../base/batches.ts'
import { after, elapsed, sleep } from '../../base/clock.ts'
import { objectKind } from '../../codec/list.ts'
import type { ObjectEvent, WatchEvent } from '../../codec/watch.ts'
import type { WatchReply } from '../../exchange/exchange.ts'
import type { GVK, GVR } from '../../kube/gvk.ts'
import { mediaType } from '../../kube/media-type.ts'
import type { ApiObject } from '../../kube/object.ts'
import { resourceVersion, type ResourceVersion } from '../../kube/resource-version.ts'
import type { Form } from '../../request/form.ts'
import { shared } from '../../request/identity.ts'
import { answerHeaders } from '../../store/answers.ts'
import { copied } from '../../store/copied.ts'
import type { CollectionKey, ObjectStore, StoredList } from '../../store/store.ts'
import { wholeOrNothing } from '../../store/whole-or-nothing.ts'
import { Demand } from './demand.ts'
import { EventLog, type LogBounds } from './event-log.ts'
import { Reader, type Opening, type ReaderEnd, type Selected } from './reader.ts'
import { UpstreamWatch, type Link, type Ways } from './upstream-watch.ts'

export interface CollectionHooks {
  /** By how many the watches of API servers have become more, or fewer. */
  readonly onWatches: (difference: number) => void
  readonly onReaders: (difference: number) => void
  /** A reader was ended that its client has not ended, and that was not over its time. */
  readonly onReaderEnded: (reason: Exclude<ReaderEnd, 'done'>) => void
  /**
   * A collection could not be had; `refused`: it is not tried again before somebody asks for it.
   */
  readonly onFailed: (gvr: GVR, cause: unknown, refused: boolean) => void
}

export interface CollectionParts {
  readonly gvr: GVR
  readonly form: Form
  readonly store: ObjectStore
  readonly ways: Ways
  readonly link: Link
  readonly bounds: LogBounds
  /** How long nobody may read before its watch is closed. */
  readonly idleMs: number
  readonly hooks: CollectionHooks
}

/** One who wants to read on from somewhere. */
export interface WantsToRead {
  /** The state first; absent: what comes after `from`. */
  readonly state?: 'with-end' | 'without-end'
  readonly from?: ResourceVersion
  readonly selected: Selected
  /** Tells readers apart. */
  readonly reader: string
  readonly bookmarks: boolean
  readonly lastsMs: number
  readonly signal: Signal
}

/**
 * How long a watch that was lost while the hub is online may be missing before new readers are not
 * left to it.
 */
const missingMs = 10_000

/**
 * After how long a collection is asked for again that the hub may not read, or that there is not.
 */
const refusedMs = 30_000

/**
 * One collection whole, in one form, for all who may read it: what is stored of it, the log of its
 * latest events, and, while there are readers, one watch of an API server. When that watch is cut
 * the readers stay: it goes on from the version that they are at. Offline they are given bookmarks,
 * and nothing else happens to them: nobody has to come back when the cloud does.
 */
export class SharedCollection implements AsyncDisposable {
  readonly key: CollectionKey
  readonly demand: Demand
  readonly #parts: CollectionParts
  readonly #readers = new Set<Reader>()
  #log: EventLog | undefined
  #gvk: GVK = { group: '', version: '', kind: '' }
  /** Aborts when nobody goes on with the log. */
  #over = new AbortController()
  #running: { readonly ending: AbortController; readonly done: Promise<void> } | undefined
  #refusedAt = Number.NEGATIVE_INFINITY
  #isWatched = false
  #lostAt = Number.NEGATIVE_INFINITY
  /** Resolves when the watch is open, or is not going to be. */
  #opened = Promise.withResolvers<void>()
  #idle: Disposable | undefined
  #closed = false

  constructor(parts: CollectionParts) {
    this.#parts = parts
    const { gvr, form, idleMs } = parts
    this.key = {
      audience: { identity: shared, form: form.key },
      gvr,
      labelSelector: '',
      fieldSelector: '',
    }
    this.demand = new Demand(idleMs)
  }

  /**
   * The version of what readers are given; `undefined`: nothing is stored. What is still being
   * written does not count: an answer that was promised by its version would be older.
   */
  get version(): ResourceVersion | undefined {
    return resourceVersion(this.#parts.store.committedVersion(this.key))
  }

  /** What its events in memory take. */
  get bytes(): number {
    return this.#log?.bytes ?? 0
  }

  /** Whether what is stored is being kept up with what happens. */
  get isLive(): boolean {
    const lost = elapsed() - this.#lostAt
    return this.#log !== undefined && (this.#isWatched || lost < missingMs)
  }

  stored(): StoredList | undefined {
    return wholeOrNothing(this.#parts.gvr, this.#parts.store.list(this.key))
  }

  /**
   * When the cloud last confirmed what is stored, in milliseconds since the epoch; 0 where nothing
   * is.
   */
  get confirmedAt(): number {
    const stored = this.stored()
    if (stored) leaveUnread(stored)
    return stored?.confirmedAt ?? 0
  }

  /**
   * Begins to watch, unless it does, and resolves when the watch is open or is not going to be,
   * after `patienceMs` at the latest. Where nothing is stored yet, it begins with what is stored
   * under `like`, if anything: the same collection, as the cloud gave it to somebody who may read
   * all of it.
   */
  async open(patienceMs: number, like?: CollectionKey): Promise<void> {
    this.#run(like)
    if (this.#isWatched) return
    const waited = new AbortController()
    await Promise.race([this.#opened.promise, sleep(patienceMs, waited.signal)])
    waited.abort()
  }

  #run(like?: CollectionKey): void {
    if (this.#running || this.#closed || elapsed() - this.#refusedAt < refusedMs) return
    const ending = new AbortController()
    this.#opened = Promise.withResolvers<void>()
    const done = this.#follow(ending.signal, like).finally(() => {
      this.#running = undefined
      this.#opened.resolve()
      if (ending.signal.aborted) return
      this.#refusedAt = elapsed()
      this.#break()
    })
    this.#running = { ending, done }
    this.#rest()
  }

  async #follow(signal: AbortSignal, like: CollectionKey | undefined): Promise<void> {
    const { key, form, store, ways, link } = { ...this.#parts, key: this.key }
    if (like && this.version === undefined) await this.#seed(like).catch(() => undefined)
    await new UpstreamWatch(
      { key, form, store, ways, link },
      {
        onListed: () => this.#listed(),
        onOpen: () => {
          this.#watched(true)
          this.#opened.resolve()
        },
        onEvents: (events) => this.#publish(events),
        onLost: () => this.#watched(false),
        onUnstored: () => this.#break(),
        onFailed: (cause, refused) => this.#parts.hooks.onFailed(this.key.gvr, cause, refused),
      },
    ).run(signal)
  }

  async #seed(like: CollectionKey): Promise<void> {
    const { store } = this.#parts
    const stored = store.list(like)
    if (stored) await copied(store, this.key, stored)
  }

  #watched(is: boolean): void {
    if (is === this.#isWatched) return
    this.#isWatched = is
    this.#lostAt = elapsed()
    this.#parts.hooks.onWatches(is ? 1 : -1)
  }

  /**
   * The log goes on where it stands at what is stored; else another one begins, and its readers
   * come back with their own versions.
   */
  #listed(): void {
    const { version } = this
    if (this.#log !== undefined && this.#log.version === version) return
    this.#break()
    this.#begin()
  }

  /** Takes up what is stored. Whether anything is. */
  #begin(): boolean {
    const stored = this.stored()
    const version = resourceVersion(stored?.resourceVersion)
    if (stored) leaveUnread(stored)
    if (stored === undefined || version === undefined) return false
    this.#gvk = objectKind(stored.gvk)
    this.#log = new EventLog(version, this.#parts.bounds)
    return true
  }

  #publish(events: readonly WatchEvent[]): void {
    const log = this.#log
    if (log === undefined) return
    const end = log.end
    log.append(events)
    if (log.end !== end) for (const reader of this.#readers) reader.wake()
  }

  /** Ends all readers, cleanly and not at once. */
  #break(): void {
    this.#log = undefined
    const over = this.#over
    this.#over = new AbortController()
    over.abort()
  }

  /** `undefined`: what follows the version that it wants to read on from is not known here. */
  read(wants: WantsToRead): WatchReply | undefined {
    const events = this.readOn(wants)
    return events && { ...this.#reply(events), held: () => this.held(wants) }
  }

  /** What of it one is told of who reads so. */
  held({ selected }: Pick<WantsToRead, 'selected'>): StoredList | undefined {
    const stored = this.stored()
    const { selection } = selected
    if (!stored || selection.everything) return stored
    const { encoding } = this.#parts.form
    const selects = (object: ApiObject): boolean => selection.selects(this.#gvk, encoding, object)
    return { ...stored, batches: mapBatches(stored.batches, (all) => all.filter(selects)) }
  }

  /** A watch that tells these events and is over. */
  watchOf(events: readonly WatchEvent[]): WatchReply {
    return this.#reply(once(events))
  }

  #reply(events: AsyncIterable<readonly WatchEvent[]>): WatchReply {
    const { form } = this.#parts
    return {
      kind: 'watch',
      from: 'cache',
      status: 200,
      headers: answerHeaders(mediaType(form.encoding, true)),
      form: () => form,
      gvk: () => this.#gvk,
      events,
      isShared: true,
    }
  }

  /** The events alone. */
  readOn(wants: WantsToRead): AsyncGenerator<readonly WatchEvent[]> | undefined {
    if (this.#closed || (this.#log === undefined && !this.#begin())) return undefined
    const log = this.#log
    const start = log && this.#start(log, wants)
    if (log === undefined || start === undefined) return undefined
    const { selected, bookmarks, lastsMs, signal } = wants
    const reader = new Reader({
      ...start,
      log,
      gvk: this.#gvk,
      encoding: this.#parts.form.encoding,
      selected,
      bookmarks,
      lastsMs,
      signal,
      over: this.#over.signal,
    })
    return this.#counted(reader, wants)
  }

  async *#counted(reader: Reader, wants: WantsToRead): AsyncGenerator<readonly WatchEvent[]> {
    const { hooks } = this.#parts
    using _demand = this.demand.join(wants.reader)
    this.#readers.add(reader)
    this.#idle?.[Symbol.dispose]()
    this.#idle = undefined
    hooks.onReaders(1)
    this.#run()
    try {
      yield* reader.events((end) => {
        if (end !== 'done') hooks.onReaderEnded(end)
      })
    } finally {
      this.#readers.delete(reader)
      hooks.onReaders(-1)
      this.#rest()
    }
  }

  #start(
    log: EventLog,
    { state, from }: WantsToRead,
  ): { cursor: number; from: ResourceVersion; opening?: Opening } | undefined {
    if (state !== undefined) {
      const stored = this.stored()
      const version = resourceVersion(stored?.resourceVersion)
      if (stored === undefined || version === undefined) return undefined
      const ends = state === 'with-end'
      return {
        cursor: log.end,
        from: version,
        opening: { kind: 'state', batches: stored.batches, ends },
      }
    }
    if (from === undefined) return undefined
    const cursor = log.after(from)
    if (cursor !== undefined) return { cursor, from }
    return this.#fromRing(log, from)
  }

  /** What the log has not any more may be on the disk. */
  #fromRing(
    log: EventLog,
    from: ResourceVersion,
  ): { cursor: number; from: ResourceVersion; opening: Opening } | undefined {
    const changes = this.#parts.store.changes(this.key, from)
    if (changes === undefined || changes === 'expired') return undefined
    const version = resourceVersion(changes.resourceVersion)
    if (version === undefined) return undefined
    const batches: Iterable<readonly ObjectEvent[]> = changes.batches
    return { cursor: log.end, from: version, opening: { kind: 'changes', batches } }
  }

  /** Closes the watch when nobody has read for long. */
  #rest(): void {
    if (this.#readers.size > 0 || this.#idle) return
    this.#idle = after(this.#parts.idleMs, () => {
      this.#idle = undefined
      void this.#stop()
    })
  }

  async #stop(): Promise<void> {
    const running = this.#running
    this.#break()
    running?.ending.abort()
    await running?.done
  }

  /** Ends its readers and its watch for good. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    this.#idle?.[Symbol.dispose]()
    await this.#stop()
  }
}

/** Lets go of the objects of a list that nobody is going to read. */
export function leaveUnread({ batches }: StoredList): void {
  batches[Symbol.iterator]().return?.()
}

async function* once(events: readonly WatchEvent[]): AsyncGenerator<readonly WatchEvent[]> {
  yield events
}
