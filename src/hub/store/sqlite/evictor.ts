import { elapsed } from '../../../base/clock.ts'
import { qualifiedName, type NamedObject } from '../named-object.ts'
import type { EvictedKind, EvictionStep } from './eviction-step.ts'
import type { CollectionAddress } from './address.ts'
import type { Evict } from './messages.ts'
import type { Write } from './write-queue.ts'

/**
 * How many objects and documents went of each kind to make room for others; `of`: the identity that
 * had more than its quota.
 */
export type OnEvicted = (counts: ReadonlyMap<EvictedKind, number>, of?: string) => void

/**
 * Until it is tried again where nothing was left that may go: it costs a look at every commit else.
 */
const restMs = 10_000
/**
 * Of a step or two for each collection: more than a cache can need, so that no mistake makes this
 * endless.
 */
const mostSteps = 200_000

export interface EvictorParts {
  readonly push: (write: Write) => Promise<unknown>
  /** The collection is not there any more. */
  readonly gone: (collection: CollectionAddress) => void
  /**
   * Lists that have been read for longest are given up, for the room that their bodies take; false:
   * none is being read.
   */
  readonly giveUpReader: () => boolean
  readonly onEvicted: OnEvicted
  /** What the node's pods refer to; `undefined`: not known. */
  readonly referencedObjects: () => readonly NamedObject[] | undefined
}

/**
 * Makes room in a database that is nearly full, or that an identity fills, a step at a time, each
 * before what waits to be written and in a commit of its own.
 */
export class Evictor {
  readonly #parts: EvictorParts
  #isMaking = false
  #notBefore = 0
  /** Identities of whose own room is made. */
  readonly #beyondQuota = new Set<string>()

  constructor(parts: EvictorParts) {
    this.#parts = parts
  }

  /** To be called after each commit that leaves little of it. */
  nearFull(): void {
    if (this.#isMaking || elapsed() < this.#notBefore) return
    this.#isMaking = true
    void this.#make()
      .catch(() => undefined)
      .finally(() => (this.#isMaking = false))
  }

  /** To be called after each commit that leaves an identity with more than its quota. */
  overQuota(identity: string): void {
    if (this.#beyondQuota.has(identity)) return
    this.#beyondQuota.add(identity)
    void this.#makeOf(identity)
      .catch(() => undefined)
      .finally(() => this.#beyondQuota.delete(identity))
  }

  async #makeOf(identity: string): Promise<void> {
    const counts = new Map<EvictedKind, number>()
    try {
      for (let steps = 0, more = true; more && steps < mostSteps; steps += 1) {
        const step = await this.#step(() => ({ kind: 'evict', of: identity }))
        more = step.more
        if (step.evicted) counts.set('quota', (counts.get('quota') ?? 0) + step.evicted.count)
      }
    } finally {
      if (counts.size > 0) this.#parts.onEvicted(counts, identity)
    }
  }

  async #make(): Promise<void> {
    const counts = new Map<EvictedKind, number>()
    try {
      let last = false
      for (let steps = 0, more = true; more && steps < mostSteps; steps += 1) {
        const step = await this.#step(() => this.#least(last))
        more = step.more || (step.exhausted === true && !last)
        last ||= step.exhausted === true
        if (step.evicted) {
          const { kind, count } = step.evicted
          counts.set(kind, (counts.get(kind) ?? 0) + count)
        }
        if (step.pinned) more = this.#parts.giveUpReader()
        if (step.exhausted && !more) this.#notBefore = elapsed() + restMs
      }
    } finally {
      if (counts.size > 0) this.#parts.onEvicted(counts)
    }
  }

  /**
   * `last`: what pods that are gone have left may go, too. What is needed is asked for when nothing
   * can be written in between.
   */
  #least(last: boolean): Evict {
    const referenced = last ? this.#parts.referencedObjects()?.map(qualifiedName) : undefined
    return { kind: 'evict', ...(referenced && { referenced }) }
  }

  async #step(operation: () => Evict): Promise<EvictionStep> {
    let made: EvictionStep = { more: false }
    await this.#parts.push({
      operation,
      bytes: 0,
      alone: 'first',
      stepped: (step) => {
        made = step
        step.evicted?.collections?.forEach((each) => this.#parts.gone(each))
      },
    })
    return made
  }
}
