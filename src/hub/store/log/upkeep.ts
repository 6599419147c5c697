import { elapsed } from '../../../base/clock.ts'
import { hubIdentity, nodeIdentity } from '../../../api/request/identity.ts'
import { compact, type CompactionParts } from './compaction.ts'
import { leastNeeded, type Evicted, type EvictedKind } from './eviction.ts'

/**
 * Shares of the maximal size: eviction starts above the first and stops at the second. The rest is
 * for garbage, and for what a compaction copies.
 */
export const evictAbove = 0.7
export const evictDownTo = 0.6
/** Between two tries where nothing may be evicted. */
const restMs = 10_000
/** Evicted at once. */
const stepShare = 1 / 64

const mostSegments = 64

/** Garbage that is left alone, however little is in use. */
export const floorShare = 1 / 16
export const floorBytes = 8 << 20

/** What lists in progress of one caller may take; no component of a node comes near. */
export const stagedShare = 1 / 4

/** Without a bound: what the node boots with, and what the hub itself reads. */
export const mostStagedOf = (identity: string, maxBytes: number): number =>
  identity === nodeIdentity || identity === hubIdentity ? Infinity : stagedShare * maxBytes

/** Called with the number of evicted objects and documents. */
export type OnEvicted = (kind: EvictedKind, count: number) => void

export interface UpkeepParts extends CompactionParts {
  readonly maxBytes: number
  readonly onEvicted: OnEvicted
  readonly onFailed: (cause: unknown) => void
}

/** Keeps the store below its maximal size, and rids it of garbage. */
export class Upkeep {
  readonly #parts: UpkeepParts
  /** One piece of work at a time. */
  #work: Promise<unknown> = Promise.resolve()
  #underWay = 0
  #restsUntil = -Infinity
  /** Bytes on the disk after the last compaction, and segments. */
  #compacted = 0
  #left = 0

  constructor(parts: UpkeepParts) {
    this.#parts = parts
  }

  /** Must be called after each write. */
  written(): void {
    if (this.#underWay > 0) return
    if (this.#isNearFull()) this.#begin(() => this.#evict())
    else if (this.#isMostlyGarbage()) this.#begin(() => this.#compact('whenIdle'))
  }

  /** Writes the log anew: what was written before may be lost. */
  writeAnew(): void {
    this.#begin(() => this.#compact('anew'))
  }

  /** Resolves to whether there is more room than before, and nothing lost. */
  async makeRoom(): Promise<boolean> {
    const { folder, log, maxBytes } = this.#parts
    const before = folder.bytes
    const { hasLost } = log
    if (!hasLost && elapsed() < this.#restsUntil) return false
    this.#begin(async () => {
      if (this.#isNearFull()) await this.#evict()
      await this.#compact(hasLost ? 'anew' : 'inNeed')
    })
    await this.#work
    return hasLost ? !log.hasLost : folder.bytes < before - maxBytes / 100
  }

  /** Resolves when nothing is under way. */
  async end(): Promise<void> {
    await this.#work
  }

  #begin(act: () => Promise<unknown>): void {
    this.#underWay += 1
    this.#work = this.#work
      .then(act)
      .catch(this.#parts.onFailed)
      .finally(() => (this.#underWay -= 1))
  }

  #isNearFull(): boolean {
    const { folder, maxBytes, state } = this.#parts
    if (elapsed() < this.#restsUntil) return false
    const limit = evictAbove * maxBytes
    // Mostly the size on the disk is enough to know.
    return folder.bytes > limit && state.weight > limit
  }

  #isMostlyGarbage(): boolean {
    const { folder, maxBytes, state } = this.#parts
    const floor = Math.min(floorBytes, maxBytes * floorShare)
    const bytes = folder.bytes - floor
    // Each start begins one.
    if (folder.segments.size > this.#left + mostSegments) return true
    return bytes > this.#compacted && bytes > 2 * folder.live && bytes > 2 * state.weight
  }

  async #compact(need: Parameters<typeof compact>[1]): Promise<void> {
    await compact(this.#parts, need)
    this.#compacted = this.#parts.folder.bytes
    this.#left = this.#parts.folder.segments.size
  }

  async #evict(): Promise<void> {
    const { state, maxBytes, path, onEvicted } = this.#parts
    const isOver = (): boolean => state.weight > evictDownTo * maxBytes
    const next = (): Evicted | undefined =>
      isOver() ? leastNeeded(state, stepShare * maxBytes) : undefined
    const counts = new Map<EvictedKind, number>()
    for (let isMore = true; isMore;) {
      isMore = await path.push({
        first: true,
        bytes: 0,
        compose: () => {
          const evicted = next()
          if (evicted) counts.set(evicted.kind, (counts.get(evicted.kind) ?? 0) + evicted.count)
          return evicted
        },
        applied: (written) => written !== undefined,
      })
    }
    for (const [kind, count] of counts) onEvicted(kind, count)
    // All that is left is needed.
    if (isOver()) this.#restsUntil = elapsed() + restMs
  }
}
