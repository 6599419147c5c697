import { elapsed, pause } from '../../../base/clock.ts'
import { hubIdentity, nodeIdentity } from '../../../api/request/identity.ts'
import { isExpectedFault } from '../../../base/expected-fault.ts'
import { StoreFailure } from '../store.ts'
import { failureOf, type ReportFault } from './faults.ts'
import type { Body } from '../state/held.ts'
import { leastNeeded, type EvictedKind } from '../state/eviction.ts'
import { grouped } from './bodies.ts'
import type { LogWriter } from './log-writer.ts'
import type { LogFolder } from './segments.ts'
import { Scope, snapshotOf } from '../state/scope.ts'
import type { State } from '../state/state.ts'
import { refused, type Keeper, type WritePath } from './write-path.ts'

/**
 * Shares of the maximal size: eviction starts above the first and stops at the second. The rest is
 * for garbage, and for what a compaction copies.
 */
export const evictAbove = 0.7
export const evictDownTo = 0.6
/** After a pass in vain: where all is needed; and where a disk fails that may be well by now. */
const restMs = { full: 10_000, failing: 100 }
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

/** Bodies copied at once, and how long other writes have the disk to themselves in between. */
const copyBytes = 256 << 10
const betweenMs = 20

const failed = 'the maintenance of the store failed'

/** Segments that are not worth a file. */
const smallBytes = 64 << 10
/** Segments with a larger share of bodies in use are left as they are. */
const mostLive = 0.8

/** Called with the number of evicted objects and documents. */
export type OnEvicted = (kind: EvictedKind, count: number) => void

export interface UpkeepParts {
  readonly state: State
  readonly log: LogWriter
  readonly folder: LogFolder
  readonly path: WritePath
  readonly maxBytes: number
  readonly segmentBytes: number
  readonly onEvicted: OnEvicted
  readonly report: ReportFault
  /** Aborts when the store is closed. */
  readonly closing: AbortSignal
}

/** Keeps the store below its maximal size, rids it of garbage, and writes anew what was lost. */
export class Upkeep implements Keeper {
  readonly #parts: UpkeepParts
  /** One at a time. */
  #pass: Promise<void> | undefined
  #isAwaited = false
  #restsUntil = -Infinity
  /** Bytes on the disk after the last compaction. */
  #compacted = 0

  constructor(parts: UpkeepParts) {
    this.#parts = parts
  }

  pass(): Promise<void> {
    return (this.#pass ??= Promise.resolve()
      .then(() => this.#work())
      .catch((cause: unknown) => {
        // Faults of the disk show in the writes of others.
        if (!isExpectedFault(cause)) this.#parts.report('maintenance', failureOf(failed, cause))
      })
      .finally(() => (this.#pass = undefined)))
  }

  room(bytes: number): number | StoreFailure | Promise<void> {
    const { folder, path, maxBytes, segmentBytes } = this.#parts
    const { isFailing } = path
    const left = maxBytes - folder.bytes
    if (!isFailing && (bytes === 0 || bytes <= left)) {
      if (this.#isNearFull() || this.#isMostlyGarbage()) void this.pass()
      return Math.min(left, segmentBytes)
    }
    if (!this.#pass && elapsed() < this.#restsUntil)
      return new StoreFailure(
        isFailing ? refused : `the cache has reached its maximum size of ${maxBytes} bytes`,
      )
    this.#isAwaited = true
    return this.pass()
  }

  /** Resolves when nothing is under way. */
  async end(): Promise<void> {
    await this.#pass
  }

  #isNearFull(): boolean {
    const { folder, maxBytes, state } = this.#parts
    if (elapsed() < this.#restsUntil) return false
    const limit = evictAbove * maxBytes
    // Mostly the size on the disk is enough to know.
    return folder.bytes > limit && state.weight > limit
  }

  #isMostlyGarbage(): boolean {
    const { folder, maxBytes, segmentBytes, state } = this.#parts
    // Each start begins one.
    if (folder.segments.size > mostSegments + folder.bytes / segmentBytes) return true
    const bytes = folder.bytes - Math.min(floorBytes, maxBytes * floorShare)
    return bytes > this.#compacted && bytes > 2 * state.weight
  }

  #rest(ms: number): void {
    this.#restsUntil = elapsed() + ms
  }

  get #isTooMuch(): boolean {
    return this.#parts.state.weight > evictDownTo * this.#parts.maxBytes
  }

  async #work(): Promise<void> {
    const { folder, path, maxBytes } = this.#parts
    const [before, isAwaited] = [folder.bytes, this.#isAwaited]
    try {
      // A lost segment takes no record of an eviction, either.
      const isMuch = path.isFailing || !this.#isNearFull() || (await this.#evict()) || isAwaited
      if (isMuch) await this.#compact()
      // So may be what was written meanwhile.
      if (!path.isFailing && this.#isNearFull()) await this.#evict()
    } finally {
      const isInVain = path.isFailing || folder.bytes > before - maxBytes / 100
      if (isAwaited && isInVain) this.#rest(path.isFailing ? restMs.failing : restMs.full)
      this.#isAwaited = false
    }
  }

  /** Resolves to whether there was anything. */
  async #evict(): Promise<boolean> {
    const { state, maxBytes, path, onEvicted } = this.#parts
    const counts = new Map<EvictedKind, number>()
    await path.exclusively(async () => {
      while (this.#isTooMuch) {
        const evicted = leastNeeded(state, stepShare * maxBytes)
        if (!evicted) break
        state.apply(evicted.record, [])
        await path.append([evicted])
        counts.set(evicted.kind, (counts.get(evicted.kind) ?? 0) + evicted.count)
      }
    })
    for (const [kind, count] of counts) onEvicted(kind, count)
    // All that is left is needed.
    if (this.#isTooMuch) this.#rest(restMs.full)
    return counts.size > 0
  }

  /**
   * Copies bodies in use out of segments that are mostly garbage or lost, then writes the state of
   * each scope, and removes what is not needed any more. From then on a start reads what was
   * written since this began; until its end all that was there is left in place.
   */
  async #compact(): Promise<void> {
    const { state, log, folder, path } = this.#parts
    let victims = new Set<number>()
    let bodies: readonly Body[] = []
    let scopes: readonly Scope[] = []
    await path.exclusively(async () => {
      const begun = await log.beginAnew()
      // Later ones are in later segments.
      bodies = [...new Set(this.#bodies())]
      victims = this.#victims(begun, bodies)
      scopes = [...state.scopes.values()]
    })
    const copied = bodies.filter(({ segment }) => victims.has(segment))
    for (const group of grouped(copied, ({ length }) => length, copyBytes))
      await this.#copy(group, victims)
    // Of one that went meanwhile, a start would know a part of what came then; a new one may refer
    // to bodies that were moved.
    for (const { key } of new Set([...scopes, ...state.scopes.values()])) {
      await path.exclusively(() => path.append([snapshotOf(state.scope(key) ?? new Scope(key))]))
      await this.#pause()
    }
    const removals = await path.exclusively(async () => {
      await path.append(state.losses.map((record) => ({ record })))
      await log.endAnew()
      path.recovered()
      return [...victims].map((id) => folder.remove(id))
    })
    this.#compacted = folder.bytes
    await Promise.all(removals)
  }

  async #copy(group: readonly Body[], victims: Set<number>): Promise<void> {
    // What cannot be read now stays where it is.
    const read = group.flatMap((body) => {
      const bytes = this.#readable(body)
      if (bytes) return [{ body, bytes }]
      victims.delete(body.segment)
      return []
    })
    const bodies = read.map(({ body, bytes }) => [bytes, body.digest] as const)
    await this.#parts.path.exclusively(async () => {
      const [written] = await this.#parts.path.append([{ record: { kind: 'bodies' }, bodies }])
      for (const [at, { segment, offset }] of written?.bodies.entries() ?? [])
        read[at]?.body.moveTo(segment, offset)
    })
    await this.#pause()
  }

  async #pause(): Promise<void> {
    if (!this.#isAwaited) await pause(betweenMs, this.#parts.closing)
  }

  /** All that the state and lists in progress refer to. */
  *#bodies(): Iterable<Body> {
    const { state } = this.#parts
    for (const scope of state.scopes.values())
      for (const [, { members }] of scope.parts())
        for (const { body } of members.values()) yield body
    for (const list of state.lists) yield* list.bodies()
  }

  /** Numbers of the segments that are removed. */
  #victims(begun: number, bodies: readonly Body[]): Set<number> {
    const live = new Map<number, number>()
    for (const { segment, length } of bodies) live.set(segment, (live.get(segment) ?? 0) + length)
    const { folder, path } = this.#parts
    const most = path.isFailing ? 0 : mostLive
    const victims = new Set<number>()
    for (const [id, { synced, end }] of folder.segments) {
      if (id >= begun) continue
      const isLost = synced < end
      if (isLost || end < smallBytes || (live.get(id) ?? 0) <= most * end) victims.add(id)
    }
    return victims
  }

  #readable({ segment, offset, length }: Body): Buffer | undefined {
    try {
      return this.#parts.folder.read(segment, offset, length)
    } catch {
      return undefined
    }
  }
}
