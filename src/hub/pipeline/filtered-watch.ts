import {
  isObjectEvent,
  versionOf,
  type ErrorEvent,
  type WatchEvent,
} from '../../api/codec/watch.ts'
import type { WatchReply } from '../../http/exchange/exchange.ts'
import type { FilterChain } from '../filter/chain.ts'
import { updateBetween, unfiltered, type ChainState } from '../filter/chain-state.ts'
import { differences } from '../filter/differences.ts'
import { filterEvent } from '../filter/event.ts'
import {
  filtersChanged,
  shownUnknown,
  type ClientCollection,
  type ShownStates,
} from '../filter/shown-states.ts'
import { objectKind } from '../../api/codec/list.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import { expired } from '../../api/kube/status.ts'

export interface FilterChangeHooks {
  /**
   * The hub has sent a client so many objects on which its filters decide otherwise since their
   * inputs changed.
   */
  readonly onDifference: (collection: ClientCollection, objects: number) => void
  /**
   * A client has to list again, as its filters have changed, or the state that it was shown is
   * unknown.
   */
  readonly onExpired: (collection: ClientCollection, why: string) => void
}

interface FilteredWatchParts {
  readonly reply: WatchReply
  readonly collection: ClientCollection
  readonly shown: ShownStates
  readonly hooks: FilterChangeHooks
  /** The current chain; `undefined` where no filter acts. */
  readonly chainNow: () => FilterChain | undefined
  /** Calls back when the chain may have changed. */
  readonly onChange: (act: () => void) => Disposable
  /** The chain when the watch was answered. */
  readonly chain: FilterChain | undefined
  /**
   * The version that its client continues from; absent: it begins with the state of the collection.
   */
  readonly from?: ResourceVersion
  readonly bookmarks: boolean
  /** Cancels the reply. */
  readonly giveUp: () => void
}

/** The event with which an API server makes a client list again. */
const expiredEvent = (why: string): ErrorEvent => ({
  type: 'ERROR',
  status: expired(`too old resource version: ${why}`),
})

/**
 * Events that were committed before the differences were computed, of objects that these did not
 * include: the client was shown such objects under `former`.
 */
interface UncomparedEvents {
  readonly former: FilterChain
  /** The version of the client, and that of the snapshot. */
  readonly position: ResourceVersion
  readonly held: ResourceVersion
}

/**
 * A filtered watch, whose filters and inputs may change. When inputs change, the client is sent the
 * objects on which the filters now decide otherwise, each at its own version, and then a bookmark
 * at the client's version. When the filters change, the client has to list again. No live event
 * passes meanwhile.
 */
export class FilteredWatch {
  readonly #parts: FilteredWatchParts
  #chain: FilterChain | undefined
  /**
   * The last observed version of the client; `undefined`: its initial events are not over, as far
   * as is known.
   */
  #position: ResourceVersion | undefined
  #uncompared: readonly UncomparedEvents[] = []
  #changed: boolean
  /** Differences are due as soon as the client's version is known. */
  #differencesDue = false
  #wake: () => void = () => undefined
  #gvk: GVK | undefined

  constructor(parts: FilteredWatchParts) {
    this.#parts = parts
    this.#chain = parts.chain
    this.#position = parts.from
    this.#changed = true
  }

  /** As in a `WatchReply`; known before the first event, too, where a snapshot has shown it. */
  get gvk(): GVK {
    return this.#gvk ?? this.#parts.reply.gvk()
  }

  async *events(): AsyncGenerator<readonly WatchEvent[]> {
    const { reply, onChange, giveUp } = this.#parts
    const source = reply.events[Symbol.asyncIterator]()
    using _changes = onChange(() => {
      this.#changed = true
      this.#wake()
    })
    try {
      for (;;) {
        const next = source.next()
        let isHere = false
        const here = (): void => {
          isHere = true
          this.#wake()
        }
        void next.then(here, here)
        while (this.#changed || !isHere) {
          if (this.#changed) yield* this.#switchChain()
          else await this.#untilWoken()
        }
        const group = await next
        if (group.done === true) return
        const shown = this.#filter(group.value)
        if (shown.length > 0) yield shown
        this.#notePosition(group.value)
      }
    } catch (error) {
      if (!(error instanceof Expired)) throw error
      const { hooks, shown, collection } = this.#parts
      hooks.onExpired(collection, error.message)
      shown.expired(collection, stateOf(this.#parts.chainNow()))
      yield [expiredEvent(error.message)]
    } finally {
      giveUp()
      // Not awaited: it may be waiting for the next event.
      void source.return?.().catch(() => undefined)
    }
  }

  #untilWoken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  /** Switches to the current chain. */
  async *#switchChain(): AsyncGenerator<readonly WatchEvent[]> {
    const [before, now] = [this.#chain, this.#parts.chainNow()]
    const due = updateBetween(stateOf(before), stateOf(now))
    if (due === 'list') throw new Expired(filtersChanged)
    this.#changed = false
    if (due === 'difference' && this.#position === undefined && this.#parts.bookmarks) {
      // Initial events all pass the same chain. The differences follow after them.
      this.#differencesDue = true
      return
    }
    this.#chain = now
    if (due === 'difference' && before && now) yield* this.#difference(before, now)
  }

  async *#difference(former: FilterChain, now: FilterChain): AsyncGenerator<readonly WatchEvent[]> {
    const { reply, collection, shown, hooks, bookmarks } = this.#parts
    const position = this.#position
    if (!position) throw new Expired(shownUnknown)
    // Another client may have observed the collection up to its newest version under a former
    // state, and be disconnected now.
    shown.changed(collection, now.state, this.#furthest(position))
    const { encoding } = reply.representation()
    // Read before anything is awaited: the snapshot is at its version only until then.
    const held = reply.snapshot?.()
    const version = resourceVersion(held?.resourceVersion)
    if (!held || !version || compareVersions(version, position) < 0) throw new Expired(shownUnknown)
    this.#uncompared = [...this.#uncompared, { former, position, held: version }]
    const gvk = (this.#gvk = objectKind(held.gvk))
    let objects = 0
    const compared = { snapshot: held, gvk, encoding, upTo: position, before: former, now }
    for await (const events of differences(compared)) {
      objects += events.length
      yield events
    }
    hooks.onDifference(collection, objects)
    if (objects > 0 && bookmarks) {
      yield [{ type: 'BOOKMARK', resourceVersion: position, initialEventsEnd: false }]
    }
  }

  /** The version of the collection; not older than `position`. */
  #furthest(position: ResourceVersion): ResourceVersion {
    const held = this.#parts.reply.snapshot?.()
    if (!held) return position
    const version = resourceVersion(held.resourceVersion)
    return version && compareVersions(version, position) > 0 ? version : position
  }

  #filter(group: readonly WatchEvent[]): readonly WatchEvent[] {
    const chain = this.#chain
    if (!chain) return group
    const { reply } = this.#parts
    const representation = reply.representation()
    const isPlain = this.#uncompared.length === 0
    if (isPlain && chain.filters.length === 0) return group
    const gvk = reply.gvk()
    const judge = reply.isShared ? judgeOnce : filterEvent
    const { encoding } = representation
    return group.flatMap((event) => {
      const former = isPlain ? undefined : this.#formerOf(event)
      if (!former) return judge(chain, gvk, encoding, event) ?? []
      return filterEvent(chain, gvk, encoding, event, former) ?? []
    })
  }

  /**
   * The chain under which the client was shown the previous state, where the differences did not
   * include the object.
   */
  #formerOf(event: WatchEvent): FilterChain | undefined {
    if (!isObjectEvent(event)) return undefined
    const version = resourceVersion(event.object.resourceVersion)
    const before = resourceVersion(event.previous?.resourceVersion)
    if (!version || !before) return undefined
    return this.#uncompared.find(
      ({ position, held }) =>
        compareVersions(version, held) <= 0 && compareVersions(before, position) <= 0,
    )?.former
  }

  /** Notes the versions of events that were passed on. */
  #notePosition(group: readonly WatchEvent[]): void {
    const { from, collection, shown } = this.#parts
    const begins = from === undefined && this.#position === undefined
    for (const event of group) {
      const isEnd = event.type === 'BOOKMARK' && event.initialEventsEnd
      const version = versionOf(event)
      if (!version) continue
      if (begins && this.#position === undefined) {
        // Initial events are unordered until a bookmark marks their end.
        if (event.type !== 'BOOKMARK') continue
        if (isEnd) shown.listed(collection, stateOf(this.#chain), version)
        this.#position = version
        this.#changed ||= this.#differencesDue
        this.#differencesDue = false
      } else if (!this.#position || compareVersions(version, this.#position) > 0)
        this.#position = version
    }
    const { length } = this.#uncompared
    if (length === 0) return
    this.#uncompared = this.#uncompared.filter(
      ({ held }) => !this.#position || compareVersions(this.#position, held) < 0,
    )
  }
}

/** The client has to list again. */
class Expired extends Error {
  readonly code = 'EXPIRED'
}

export const stateOf = (chain: FilterChain | undefined): ChainState => chain?.state ?? unfiltered

/** The results of chains for events that several watches share; collected with the event. */
const results = new WeakMap<WatchEvent, Map<FilterChain, WatchEvent | undefined>>()

/** The same as `filterEvent`, but one result for all watches with the same chain. */
const judgeOnce: typeof filterEvent = (chain, gvk, encoding, event) => {
  let made = results.get(event)
  if (!made) results.set(event, (made = new Map()))
  if (!made.has(chain)) made.set(chain, filterEvent(chain, gvk, encoding, event))
  return made.get(chain)
}
