import { elapsed } from '../../base/clock.ts'
import type { EvictedKind, Step } from './eviction.ts'
import type { CollectionAddress } from './messages.ts'
import type { Write } from './write-queue.ts'

/** How many objects and documents went of each kind to make room for others. */
export type OnEvicted = (counts: ReadonlyMap<EvictedKind, number>) => void

/** Until it is tried again where nothing was left that may go: it costs a look at every commit else. */
const restMs = 10_000
/** Of a step or two for each collection: more than a cache can need, so that no mistake makes this endless. */
const mostSteps = 200_000

export interface RoomParts {
  readonly push: (write: Write) => Promise<unknown>
  /** The collection is not there any more. */
  readonly gone: (collection: CollectionAddress) => void
  /** Lists that have been read for longest are given up, for the room that their bodies take; false: none is being read. */
  readonly giveUpReader: () => boolean
  readonly onEvicted: OnEvicted
}

/** Makes room in a database that is nearly full, a step at a time, each before what waits to be written and in a commit of its own. */
export class Room {
  readonly #parts: RoomParts
  #isMaking = false
  #notBefore = 0

  constructor(parts: RoomParts) {
    this.#parts = parts
  }

  /** To be called after each commit that leaves little of it. */
  isScarce(): void {
    if (this.#isMaking || elapsed() < this.#notBefore) return
    this.#isMaking = true
    void this.#make()
      .catch(() => undefined)
      .finally(() => (this.#isMaking = false))
  }

  async #make(): Promise<void> {
    const counts = new Map<EvictedKind, number>()
    try {
      for (let steps = 0, more = true; more && steps < mostSteps; steps += 1) {
        const step = await this.#step()
        more = step.more
        if (step.evicted) {
          const { kind, count } = step.evicted
          counts.set(kind, (counts.get(kind) ?? 0) + count)
        }
        if (step.pinned) more = this.#parts.giveUpReader()
        if (step.exhausted) this.#notBefore = elapsed() + restMs
      }
    } finally {
      if (counts.size > 0) this.#parts.onEvicted(counts)
    }
  }

  async #step(): Promise<Step> {
    let made: Step = { more: false }
    await this.#parts.push({
      operation: () => ({ kind: 'evict' }),
      bytes: 0,
      alone: 'first',
      stepped: (step) => {
        made = step
        if (step.evicted?.collection) this.#parts.gone(step.evicted.collection)
      },
    })
    return made
  }
}
