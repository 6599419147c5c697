import { elapsed } from '../../../base/clock.ts'
import { hubIdentity, nodeIdentity } from '../../../api/request/identity.ts'
import { qualifiedName, type NamedObject } from '../named-object.ts'
import { compact, type CompactionParts } from './compaction.ts'
import { leastRecent, readersIn, unreferenced, type Evicted, type EvictedKind } from './eviction.ts'
import { scopeOfRecord, type LogRecord } from './record.ts'

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

/**
 * The quota of all that one identity may have; no component of a node comes near.
 * Beyond it, the identity loses the least recently confirmed until an eighth of the quota is free.
 */
export const quotaShare = 1 / 4
export const quotaTarget = 7 / 8

/** Without a quota: what the node boots with, and what the hub itself reads. */
export const quotaOf = (identity: string, maxBytes: number): number =>
  identity === nodeIdentity || identity === hubIdentity ? Infinity : quotaShare * maxBytes

/**
 * Called with the number of evicted objects and documents; `of`: the identity that was beyond its
 * quota.
 */
export type OnEvicted = (kind: EvictedKind, count: number, of?: string) => void

export interface UpkeepParts extends CompactionParts {
  readonly maxBytes: number
  /** The objects that the node's pods refer to; `undefined`: not known. */
  readonly referencedObjects: () => readonly NamedObject[] | undefined
  readonly onEvicted: OnEvicted
  readonly onFailed: (cause: unknown) => void
}

/** Keeps the store below its maximal size, and rids it of garbage. */
export class Upkeep {
  readonly #parts: UpkeepParts
  /** One piece of work at a time. */
  #work: Promise<unknown> = Promise.resolve()
  #underWay = 0
  /** Identities that were written for since they were measured. */
  readonly #written = new Set<string>()
  #restsUntil = -Infinity
  /** Bytes on the disk after the last compaction, and segments. */
  #compacted = 0
  #left = 0

  constructor(parts: UpkeepParts) {
    this.#parts = parts
  }

  /** Must be called after each write. */
  written(records: readonly LogRecord[]): void {
    for (const record of records) {
      const identity = identityOf(record)
      if (identity) this.#written.add(identity)
    }
    if (this.#underWay === 0) this.#next()
  }

  #next(): void {
    for (const identity of this.#written) {
      this.#written.delete(identity)
      if (this.#isBeyondQuota(identity)) return this.#begin(() => this.#evictOf(identity))
    }
    if (this.#isNearFull()) this.#begin(() => this.#evict())
    else if (this.#isMostlyGarbage()) this.#begin(() => this.#compact('whenIdle'))
  }

  #isBeyondQuota(identity: string): boolean {
    const { maxBytes, state } = this.#parts
    const quota = quotaOf(identity, maxBytes)
    // What one identity may have is measured record by record: mostly all together is less.
    return quota < Infinity && state.weight > quota && state.weightOf(identity) > quota
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
      .finally(() => {
        this.#underWay -= 1
        if (this.#underWay === 0 && !this.#parts.closing.aborted && this.#written.size > 0)
          this.#next()
      })
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
    const { state, maxBytes, referencedObjects } = this.#parts
    const step = stepShare * maxBytes
    const isOver = (): boolean => state.weight > evictDownTo * maxBytes
    // Events are not measured as they come.
    for (const identity of readersIn(state))
      if (this.#isBeyondQuota(identity)) await this.#evictOf(identity)
    await this.#evictAll('old', () => (isOver() ? leastRecent(state, step) : undefined))
    const gone = (): Evicted | undefined => {
      const referenced = isOver() ? referencedObjects() : undefined
      return referenced && unreferenced(state, new Set(referenced.map(qualifiedName)))
    }
    await this.#evictAll('gone', gone)
    // All that is left is needed.
    if (isOver()) this.#restsUntil = elapsed() + restMs
  }

  async #evictOf(identity: string): Promise<void> {
    const { state, maxBytes } = this.#parts
    const target = quotaTarget * quotaOf(identity, maxBytes)
    const next = (): Evicted | undefined => {
      const excess = state.weightOf(identity) - target
      return excess > 0 ? leastRecent(state, excess, identity) : undefined
    }
    await this.#evictAll('quota', next, identity)
  }

  async #evictAll(kind: EvictedKind, next: () => Evicted | undefined, of?: string): Promise<void> {
    const { path, onEvicted } = this.#parts
    let count = 0
    for (let isMore = true; isMore;) {
      isMore = await path.push({
        first: true,
        bytes: 0,
        compose: () => {
          const evicted = next()
          count += evicted?.count ?? 0
          return evicted && { record: evicted.record }
        },
        applied: (written) => written !== undefined,
      })
    }
    if (count > 0) onEvicted(kind, count, of)
  }
}

/**
 * Who may have more by it. Of what is kept once for all callers no event counts: to measure it
 * would be most of the event's work.
 */
function identityOf(record: LogRecord): string | undefined {
  if (record.kind === 'document') return record.document[0]
  const holder = 'holder' in record ? record.holder : undefined
  return holder ?? scopeOfRecord(record)?.[0]
}
