import { after } from '../../base/clock.ts'
import { versionOf, type ErrorEvent, type WatchEvent } from '../../api/codec/watch.ts'
import type { WatchReply } from '../../http/exchange/exchange.ts'
import type { FilterChain } from '../filter/chain.ts'
import { updateBetween, unfiltered, type ChainState } from '../filter/chain-state.ts'
import { differences } from '../filter/differences.ts'
import { filterEvent } from '../filter/event.ts'
import type { ClientCollection, ChainStateHistory } from '../filter/chain-state-history.ts'
import { objectKind } from '../../api/codec/list.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import { expired } from '../../api/kube/status.ts'
import { prepareFilters } from './prepare-filters.ts'

/** Who is told of what watches were owed. */
export interface FilterChangeHooks {
  /**
   * A client has been told of so many objects that look different since what filters know has
   * changed.
   */
  readonly onDifference: (audience: ClientCollection, objects: number) => void
  /**
   * A client has to list again, since its filters have changed, or what it was shown is not known.
   */
  readonly onExpired: (audience: ClientCollection, why: string) => void
}

export interface FilteredWatchParts {
  readonly reply: WatchReply
  readonly audience: ClientCollection
  readonly shown: ChainStateHistory
  readonly hooks: FilterChangeHooks
  /** The chain of now; `undefined` where no filter stands for it. */
  readonly chainNow: () => FilterChain | undefined
  /** Calls back when it may be another. */
  readonly onChange: (act: () => void) => Disposable
  /** The chain as it was when the watch was answered. */
  readonly chain: FilterChain | undefined
  /** Where its client goes on from; absent: it begins with the state of the collection. */
  readonly from?: ResourceVersion
  /**
   * The chains under which a client that goes on from there may have been shown what it holds, if
   * other ones.
   */
  readonly former: readonly FilterChain[]
  readonly bookmarks: boolean
  /** Says that the reply is not read any further. */
  readonly giveUp: () => void
}

/** How long a client is given to take what it was told, before it counts as told. */
const takenMs = 10_000

/** Why one has to list whose filters are others. */
export const filtersChanged = 'the filters of this collection have changed'

/** Why a client has to list that cannot be told what has changed for it. */
export const shownUnknown = 'what its client was shown is not known'

/** Tells a client that it has to list, as an API server does. */
export const expiredEvent = (why: string): ErrorEvent => ({
  type: 'ERROR',
  status: expired(`too old resource version: ${why}`),
})

/**
 * Events that were committed before what a client holds was compared with it, of objects that were
 * not: what the client holds of those it was shown by `former`.
 */
interface Overtaken {
  readonly former: readonly FilterChain[]
  /** How far the client had been told, and how far the collection had come. */
  readonly position: ResourceVersion
  readonly held: ResourceVersion
}

/**
 * A watch as filters leave it, while they and what they know change under it: where only what they
 * know does, its client is told of the objects that look different by it, each with its own
 * version, and then of the version that it is at. Where the filters change it has to list. No live
 * event passes meanwhile.
 */
export class FilteredWatch {
  readonly #parts: FilteredWatchParts
  #chain: FilterChain | undefined
  /**
   * What the client was told last; `undefined`: its initial events are not over, as far as is
   * known.
   */
  #position: ResourceVersion | undefined
  #overtaken: readonly Overtaken[] = []
  #changed: boolean
  /** There is a difference to be told once it is known where the client is. */
  #isLate = false
  #wake: () => void = () => undefined
  #gvk: GVK | undefined
  #taken: Disposable | undefined

  constructor(parts: FilteredWatchParts) {
    this.#parts = parts
    this.#chain = parts.chain
    this.#position = parts.from
    this.#changed = true
  }

  /** As in a `WatchReply`; known, too, where what is stored tells it before the first event. */
  get gvk(): GVK {
    return this.#gvk ?? this.#parts.reply.gvk()
  }

  async *events(): AsyncGenerator<readonly WatchEvent[]> {
    const { reply, onChange, former, giveUp } = this.#parts
    const source = reply.events[Symbol.asyncIterator]()
    using _changes = onChange(() => {
      this.#changed = true
      this.#wake()
    })
    try {
      if (former.length > 0 && this.#chain) yield* this.#difference(former, this.#chain)
      for (;;) {
        const next = source.next()
        let isHere = false
        const here = (): void => {
          isHere = true
          this.#wake()
        }
        void next.then(here, here)
        while (this.#changed || !isHere) {
          if (this.#changed) yield* this.#renewed()
          else await this.#woken()
        }
        const group = await next
        if (group.done === true) return
        const shown = await this.#judged(group.value)
        if (shown.length > 0) yield shown
        this.#told(group.value)
      }
    } catch (error) {
      if (!(error instanceof Expired)) throw error
      const { hooks, shown, audience } = this.#parts
      hooks.onExpired(audience, error.message)
      shown.recordRelist(audience, stateOf(this.#parts.chainNow()))
      yield [expiredEvent(error.message)]
    } finally {
      this.#taken?.[Symbol.dispose]()
      giveUp()
      // It may be waiting for what its server says next: nobody has to wait for that.
      void source.return?.().catch(() => undefined)
    }
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  /** Goes over to the chain of now. */
  async *#renewed(): AsyncGenerator<readonly WatchEvent[]> {
    const { chainNow, audience, shown } = this.#parts
    const [before, now] = [this.#chain, chainNow()]
    const due = updateBetween(stateOf(before), stateOf(now))
    if (due === 'list') throw new Expired(filtersChanged)
    this.#changed = false
    if (due === 'difference' && this.#position === undefined && this.#parts.bookmarks) {
      // Initial events are all judged alike. What has changed meanwhile is told when they are over.
      this.#isLate = true
      return
    }
    this.#chain = now
    if (due === 'difference' && before && now) return yield* this.#difference([before], now)
    const state = stateOf(now)
    if (before !== now && (now || shown.has(audience))) {
      await shown.begin(audience, state, this.#position)
    }
  }

  async *#difference(
    former: readonly FilterChain[],
    now: FilterChain,
  ): AsyncGenerator<readonly WatchEvent[]> {
    const { reply, audience, shown, hooks, bookmarks } = this.#parts
    const position = this.#position
    if (!position) throw new Expired(shownUnknown)
    // Another client of the audience may have come as far as the collection under a former state,
    // and be away now.
    await shown.begin(audience, now.state, this.#furthest(position))
    const representation = reply.representation()
    // Gone through at once: what it holds is what was stored at its version only until something
    // else is awaited.
    using held = reply.snapshot?.()
    const version = resourceVersion(held?.resourceVersion)
    if (!held || !version || compareVersions(version, position) < 0) throw new Expired(shownUnknown)
    this.#overtaken = [...this.#overtaken, { former, position, held: version }]
    const gvk = (this.#gvk = objectKind(held.gvk))
    const { encoding } = representation
    const settle = (objects: readonly ApiObject[]): Promise<void> =>
      prepareFilters(now, gvk, representation, objects)
    let objects = 0
    const compared = { snapshot: held, gvk, encoding, upTo: position, before: former, now }
    for await (const events of differences(compared, settle)) {
      objects += events.length
      yield events
    }
    if (!held.isWhole()) throw new Expired(shownUnknown)
    hooks.onDifference(audience, objects)
    if (objects > 0 && bookmarks) {
      yield [{ type: 'BOOKMARK', resourceVersion: position, initialEventsEnd: false }]
    }
    this.#taken?.[Symbol.dispose]()
    this.#taken = after(takenMs, () => shown.recordDelivery(audience, now.state))
  }

  /** How far the collection has come; not less than `position`. */
  #furthest(position: ResourceVersion): ResourceVersion {
    using held = this.#parts.reply.snapshot?.()
    if (!held) return position
    const version = resourceVersion(held.resourceVersion)
    return version && compareVersions(version, position) > 0 ? version : position
  }

  async #judged(group: readonly WatchEvent[]): Promise<readonly WatchEvent[]> {
    const chain = this.#chain
    if (!chain) return group
    const { reply, audience } = this.#parts
    const representation = reply.representation()
    if (representation.projection !== 'object' && !audience.isPartial) return group
    const isPlain = this.#overtaken.length === 0
    if (isPlain && chain.filters.length === 0) return group
    const gvk = reply.gvk()
    await prepareFilters(chain, gvk, representation, objectsOf(group))
    // Chains on parts are each watch's own.
    const judge = reply.isShared && !audience.isPartial ? judgeOnce : filterEvent
    const { encoding } = representation
    return group.flatMap((event) => {
      const former = isPlain ? undefined : this.#formerOf(event)
      if (!former) return judge(chain, gvk, encoding, event) ?? []
      const [before = chain, ...others] = former
      // In which way it was shown what was before is not known: then the event's type tells.
      const asked = others.length > 0 ? withoutPrevious(event) : event
      return filterEvent(chain, gvk, encoding, asked, before) ?? []
    })
  }

  /**
   * The chains by which the client was shown what was before an event, where that has not been
   * compared since.
   */
  #formerOf(event: WatchEvent): readonly FilterChain[] | undefined {
    if (event.type === 'BOOKMARK' || event.type === 'ERROR') return undefined
    const version = resourceVersion(event.object.resourceVersion)
    const before = resourceVersion(event.previous?.resourceVersion)
    if (!version || !before) return undefined
    return this.#overtaken.find(
      ({ position, held }) =>
        compareVersions(version, held) <= 0 && compareVersions(before, position) <= 0,
    )?.former
  }

  /** These were passed on. */
  #told(group: readonly WatchEvent[]): void {
    const { from, audience, shown } = this.#parts
    const begins = from === undefined && this.#position === undefined
    for (const event of group) {
      const isEnd = event.type === 'BOOKMARK' && event.initialEventsEnd
      const told = versionOf(event)
      if (!told) continue
      if (begins && this.#position === undefined) {
        // Its versions are in no order before one says that all up to it has been told.
        if (event.type !== 'BOOKMARK') continue
        if (isEnd) shown.recordList(audience, stateOf(this.#chain), told)
        this.#position = told
        this.#changed ||= this.#isLate
        this.#isLate = false
      } else if (!this.#position || compareVersions(told, this.#position) > 0) this.#position = told
    }
    const { length } = this.#overtaken
    if (length === 0) return
    this.#overtaken = this.#overtaken.filter(
      ({ held }) => !this.#position || compareVersions(this.#position, held) < 0,
    )
  }
}

/** Its client has to list. */
class Expired extends Error {
  readonly code = 'EXPIRED'
}

export const stateOf = (chain: FilterChain | undefined): ChainState => chain?.state ?? unfiltered

function withoutPrevious(event: WatchEvent): WatchEvent {
  if (event.type === 'BOOKMARK' || event.type === 'ERROR') return event
  const { previous: _unknown, ...rest } = event
  return rest
}

const objectsOf = (events: readonly WatchEvent[]): readonly ApiObject[] =>
  events.flatMap((event) => ('object' in event ? [event.object] : []))

/** What chains have made of events that several watches are given; gone with the event. */
const judged = new WeakMap<WatchEvent, Map<FilterChain, WatchEvent | undefined>>()

/** The same as `judgeEvent`, and the same instance for all who are shown the same. */
const judgeOnce: typeof filterEvent = (chain, gvk, encoding, event) => {
  let made = judged.get(event)
  if (!made) judged.set(event, (made = new Map()))
  if (!made.has(chain)) made.set(chain, filterEvent(chain, gvk, encoding, event))
  return made.get(chain)
}
