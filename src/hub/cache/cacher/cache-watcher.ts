import { onAbort, type AbortSignalLike } from '../../../base/abort.ts'
import { after, elapsed, every, jitter } from '../../../base/clock.ts'
import { selectEvent, type Selection } from '../../../api/codec/selection.ts'
import {
  minWatchMs,
  type ObjectEvent,
  type UnreadEvent,
  type WatchEvent,
} from '../../../api/codec/watch.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import type { Encoding } from '../../../api/kube/media-type.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { expired } from '../../../api/kube/status.ts'
import { bookmarkMs, lastBookmarkMs } from '../../../api/request/watch-times.ts'
import type { StoredList } from '../../store/store.ts'
import type { EventLog } from './event-log.ts'

export interface CacheWatcherParts {
  readonly log: EventLog
  /** The cursor in the log to begin at, and the version that the client has observed. */
  readonly cursor: number
  readonly from: string
  /** The state of the collection, which is sent before the log is read. */
  readonly backfill?: StoredList['batches']
  readonly selection: Selection
  readonly gvk: GVK
  readonly encoding: Encoding
  readonly bookmarks: boolean
  readonly lastsMs: number
  readonly signal: AbortSignalLike
  /**
   * Aborts when no event follows in the log; with the reason 'expired' where the client has to
   * list.
   */
  readonly logEnded: AbortSignal
}

/** Why a cache watcher ended. */
export type WatcherEnd = 'done' | 'slow' | 'over' | 'expired'

/**
 * Cache watchers end at random times within this, so that their clients do not all return at once.
 */
const spreadMs = 1_000

/** The most bytes of one batch. */
const writeBytes = 64 * 1024

/**
 * One client's watch on the log of a collection. It reads at the client's pace, and ends when the
 * log has dropped events that the client has not read.
 */
export class CacheWatcher {
  readonly #parts: CacheWatcherParts
  readonly #began = elapsed()
  #cursor: number
  /** The version that the client has observed, or that the backfill has reached. */
  #from: string
  #ended = false
  #end: WatcherEnd = 'done'
  #bookmarkDue = false
  /**
   * The log may be ahead without an event for the client, as after a list in which objects were
   * missing. Then a bookmark gives the version, to clients that accept them.
   */
  #positionDue = true
  #wake: () => void = () => undefined

  constructor(parts: CacheWatcherParts) {
    this.#parts = parts
    this.#cursor = parts.cursor
    this.#from = parts.from
  }

  /** To be called when the log has grown. */
  wake(): void {
    this.#wake()
  }

  /** To be called when the log goes on at a later version, which its client gets at once. */
  skip(): void {
    this.#positionDue = true
    this.#wake()
  }

  /** The events, in groups; ends cleanly. `onEnd` is called once, whatever the reason. */
  async *events(
    onBegin: () => void,
    onEnd: (end: WatcherEnd) => void,
  ): AsyncGenerator<readonly WatchEvent[]> {
    onBegin()
    using timers = new DisposableStack()
    this.#endings(timers)
    try {
      yield* this.#backfill()
      while (!this.#ended) {
        if (this.#parts.log.skips(this.#from)) {
          this.#end = 'expired'
          break
        }
        const events = this.#next()
        if (events === 'dropped') {
          this.#end = 'slow'
          return
        }
        if (events.length > 0) yield events
        else await this.#untilWoken()
      }
      if (this.#end === 'expired') yield [errorOf(`too old resource version: ${this.#from}`)]
    } finally {
      onEnd(this.#end)
    }
  }

  #endings(timers: DisposableStack): void {
    const { signal, logEnded, lastsMs, bookmarks } = this.#parts
    const end = (): void => {
      this.#ended = true
      this.#wake()
    }
    const bookmark = (): void => {
      this.#bookmarkDue = true
      this.#wake()
    }
    timers.use(onAbort(signal, end))
    timers.use(after(lastsMs, end))
    timers.use(
      onAbort(logEnded, () => {
        this.#end = logEnded.reason === 'expired' ? 'expired' : 'over'
        timers.use(after(soon(elapsed() - this.#began), end))
      }),
    )
    if (!bookmarks) return
    timers.use(every(bookmarkMs, bookmark))
    if (lastsMs > lastBookmarkMs) timers.use(after(lastsMs - lastBookmarkMs, bookmark))
  }

  *#backfill(): Generator<readonly WatchEvent[]> {
    const { backfill, selection, gvk, encoding, bookmarks } = this.#parts
    if (!backfill) return
    for (const { objects } of backfill) {
      const shown = objects.filter((object) => selection.selects(gvk, encoding, object))
      if (shown.length > 0) yield shown.map((object) => ({ type: 'ADDED', object }) as const)
    }
    if (bookmarks) yield [bookmarkAt(this.#from, true)]
  }

  /** The next events of the log, a bookmark that is due, or nothing. */
  #next(): readonly WatchEvent[] | 'dropped' {
    const { log } = this.#parts
    const events: WatchEvent[] = []
    for (let bytes = 0; bytes < writeBytes;) {
      const group = log.at(this.#cursor)
      if (group === 'dropped') return 'dropped'
      if (group === undefined) return events.length > 0 ? events : this.#bookmark()
      this.#cursor += 1
      bytes += group.bytes
      for (const event of group.events) {
        const isDue = event.type === 'UNREAD' || isNewer(event.object.resourceVersion, this.#from)
        const shown = isDue && this.#select(event)
        if (shown) events.push(shown)
      }
      if (isNewer(group.version, this.#from)) this.#from = group.version
    }
    return events
  }

  /** The client has observed everything up to the version of the log. */
  #bookmark(): readonly WatchEvent[] {
    const { log, bookmarks } = this.#parts
    const { version } = log
    const isAhead = isNewer(version, this.#from)
    const isDue = this.#bookmarkDue || (this.#positionDue && isAhead && bookmarks)
    this.#bookmarkDue = this.#positionDue = false
    // A client that is ahead of the log is sent no older version.
    if (!isDue || (!isAhead && version !== this.#from)) return []
    this.#from = version
    return [bookmarkAt(version, false)]
  }

  #select(event: ObjectEvent | UnreadEvent): WatchEvent | undefined {
    const { gvk, encoding, selection } = this.#parts
    if (event.type === 'UNREAD' || selection.everything) return event
    return selectEvent(selection, gvk, encoding, event)
  }

  async #untilWoken(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      const waits = this.#ended || this.#bookmarkDue || this.#positionDue
      if (waits || this.#parts.log.at(this.#cursor) !== undefined) resolve()
    })
  }
}

const soon = (lastedMs: number): number => Math.max(minWatchMs - lastedMs, 0) + jitter(0, spreadMs)

const errorOf = (why: string): WatchEvent => ({ type: 'ERROR', status: expired(why) })

const bookmarkAt = (version: string, initialEventsEnd: boolean): WatchEvent => ({
  type: 'BOOKMARK',
  resourceVersion: version,
  initialEventsEnd,
})
