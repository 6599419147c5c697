import { elapsed } from '../../../base/clock.ts'
import { qualifiedName, type NamedObject } from '../named-object.ts'
import type { CollectionAddress } from './address.ts'
import type { Evict, EvictedKind, EvictionStep } from './messages.ts'
import type { Write } from './write-queue.ts'

/**
 * Called with the number of evicted objects and documents of each kind; `of`: the identity that was
 * beyond its quota.
 */
export type OnEvicted = (counts: ReadonlyMap<EvictedKind, number>, of?: string) => void

/** How long the evictor rests where nothing may be evicted: each try costs a step. */
const restMs = 10_000
/** More than a cache can need, at a step or two for each collection: a bound for mistakes. */
const mostSteps = 200_000

export interface EvictorParts {
  readonly push: (write: Write) => Promise<unknown>
  /** The collection was evicted. */
  readonly gone: (collection: CollectionAddress) => void
  /**
   * Ends the longest list read, for the room that its bodies take; false: no list is being read.
   */
  readonly giveUpReader: () => boolean
  readonly onEvicted: OnEvicted
  readonly onFailed: (cause: unknown) => void
  /** The objects that the node's pods refer to; `undefined`: not known. */
  readonly referencedObjects: () => readonly NamedObject[] | undefined
}

/**
 * Evicts from a database that is nearly full, or for an identity beyond its quota, a step at a
 * time: each step before the writes that wait, in its own commit.
 */
export class Evictor {
  readonly #parts: EvictorParts
  #isMaking = false
  #notBefore = 0
  /** Identities whose eviction is in progress. */
  readonly #beyondQuota = new Set<string>()

  constructor(parts: EvictorParts) {
    this.#parts = parts
  }

  /** Must be called after each commit that leaves the database nearly full. */
  nearFull(): void {
    if (this.#isMaking || elapsed() < this.#notBefore) return
    this.#isMaking = true
    void this.#make()
      .catch(this.#parts.onFailed)
      .finally(() => (this.#isMaking = false))
  }

  /** Must be called after each commit that leaves an identity beyond its quota. */
  overQuota(identity: string): void {
    if (this.#beyondQuota.has(identity)) return
    this.#beyondQuota.add(identity)
    void this.#make(identity)
      .catch(this.#parts.onFailed)
      .finally(() => this.#beyondQuota.delete(identity))
  }

  /** `of`: an identity beyond its quota; absent: the least needed records. */
  async #make(of?: string): Promise<void> {
    const counts = new Map<EvictedKind, number>()
    try {
      let last = false
      for (let steps = 0, more = true; more && steps < mostSteps; steps += 1) {
        const step = await this.#step(() =>
          of === undefined ? this.#least(last) : { kind: 'evict', of },
        )
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
      if (counts.size > 0) this.#parts.onEvicted(counts, of)
    }
  }

  /** `last`: unreferenced objects may be evicted, too. Called when no write can come in between. */
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
