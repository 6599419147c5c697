import { latest } from '../../../base/clock.ts'
import { isObjectEvent, type WatchEvent } from '../../../api/codec/watch.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import type { CollectionAddress } from './address.ts'
import type { NamePair } from './messages.ts'
import type { Reads } from './reads.ts'
import { isPast, mayFollow, newest } from './versions.ts'

/** The part of an object in a collection that comparing needs. */
export interface Entry {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: string
}

/** An entry that was added or changed, or that was deleted at its `version`. */
export interface Change extends Entry {
  readonly deleted: boolean
}

export interface CollectionVersion {
  readonly gvk: GVK
  readonly version: string
  readonly extra: string
}

/** The events of one `apply`. */
export interface EventBatch {
  readonly changes: readonly Change[]
  /** The newest version of the events; '' for none. */
  readonly version: string
  /** As `ApplyOptions.since`; '' where not given. */
  readonly since: string
}

/** Names may contain any character, also a separator. */
export const entryKey = ({ namespace, name }: { namespace: string; name: string }): string =>
  `${namespace.length}/${namespace}${name}`

export const pairOf = ({ namespace, name }: Entry): NamePair => [namespace, name]

/** Follows the changes of a collection while a list of it is being staged. */
export interface ChangeListener {
  changed(key: string, change: Change): void
  replacedAt(version: string): void
}

/**
 * The state of a collection in use as of the last accepted write, committed or not. A new list is
 * compared with it, so that unchanged objects are not written. When a write fails, this expectation
 * is void, and the collection is unfit until a list repairs it:
 *
 * ```
 *            unfit  missedWrite  lists in progress  reads, and where events are applied
 * fit        no     no           any                served; to the collection, or to the new list
 * unfit      yes    yes          none               not served; only to records of single objects
 * relisted   yes    yes          accepted           not served; to the new list
 * healing    yes    no           sent               not served; to the new list, by the writer too
 *
 * fit --failed--> unfit --replaced--> relisted --sending--> healing --committed--> fit
 *                   ^----------failed----'---------failed------'
 * ```
 *
 * A `generation` ends with a failure, and with anything else that changes what is stored
 * (`damaged`, `interrupt`, `reload`). Conclusions from what is stored hold within one generation. A
 * list of an earlier generation is not sent any more, which is a failure too. If it was sent
 * before, it stays in progress until it is answered, and its commit does not make the collection
 * fit, though the writer applies events to it.
 *
 * Independent of this are `hasDamage`, from the discovery of damage to the commit of the next list
 * of the same generation, and `unsynced`, from events without a deletion to the next with one, or
 * to a list.
 */
export class CollectionState {
  readonly address: CollectionAddress
  readonly listeners = new Set<ChangeListener>()
  /** See above. Conclusions from an earlier generation do not hold. */
  generation = 0
  /** A write failed, and no complete list has been committed since: it must not be served. */
  unfit = false
  /**
   * The same from the writer's view, for which a list counts as soon as it is sent: later events
   * apply to that list.
   */
  missedWrite = false
  /** One of its objects is damaged; the next list repairs it. */
  hasDamage = false
  /**
   * A power cut may lose its newest changes: a list without changes is written to make them
   * durable.
   */
  unsynced: boolean
  #confirmedAt = 0
  #entries: Map<string, Entry> | undefined
  #head: CollectionVersion | undefined
  /** Changes accepted and not yet known to be committed, in order. */
  readonly #accepted = new Set<EventBatch>()
  /** Lists accepted and not answered yet. */
  #underWay = 0
  #last: Promise<unknown> = Promise.resolve()

  constructor(address: CollectionAddress, unsynced: boolean) {
    this.address = address
    this.unsynced = unsynced
  }

  /**
   * When an API server last confirmed it since the start, in milliseconds since the epoch; 0: not
   * yet.
   */
  get confirmedAt(): number {
    return this.#confirmedAt
  }

  confirmed(at: number): void {
    this.#confirmedAt = this.#confirmedAt === 0 ? at : latest(this.#confirmedAt, at)
  }

  get size(): number {
    return this.#entries?.size ?? 0
  }

  /** Whether the tables have its whole state. */
  get idle(): boolean {
    return this.forgettable && this.#accepted.size === 0 && !this.unfit && !this.hasDamage
  }

  /** Whether its entries may be dropped: they can be read again. */
  get forgettable(): boolean {
    return this.listeners.size === 0 && this.#underWay === 0
  }

  forget(): void {
    this.#entries = undefined
    this.#head = undefined
  }

  /** `undefined`: no complete list is stored, or it missed a write since. */
  head(reads: Reads): CollectionVersion | undefined {
    this.entries(reads)
    return this.#follows ? this.#head : undefined
  }

  /** The version of `head`, without reading the entries. */
  version(reads: Reads): string | undefined {
    if (this.#entries) return this.#follows ? this.#head?.version : undefined
    const head = this.unfit ? undefined : reads.head(this.address)
    if (!head?.whole) return undefined
    let { version } = head
    for (const batch of this.#accepted) {
      if (!isNewer(batch.since, version)) version = newest(version, batch.version)
    }
    return version
  }

  /**
   * The version that is stored, where that is known without a read, as each event of a watch needs
   * it. `undefined`: not known.
   */
  get committedVersion(): string | undefined {
    const isInDoubt = this.unfit || this.#accepted.size > 0 || this.#underWay > 0
    return isInDoubt ? undefined : this.#head?.version
  }

  /** Its entries, read at first use, with the writes accepted since. */
  entries(reads: Reads): ReadonlyMap<string, Entry> {
    return this.#entries ?? this.#load(reads)
  }

  /** Makes `settled` wait for a write. */
  track<T>(promise: Promise<T>): Promise<T> {
    this.#last = promise.catch(() => undefined)
    return promise
  }

  /** Resolves when all accepted writes have been answered; `generation` shows with what result. */
  async settled(): Promise<void> {
    await this.#last
  }

  /** Events were accepted. The returned function must be called with their outcome. */
  accepted(batch: EventBatch): (failed: boolean) => void {
    if (this.#takesIn) this.#accepted.add(batch)
    this.unsynced = !batch.changes.some(({ deleted }) => deleted)
    for (const change of this.#follows ? this.#follow(batch) : batch.changes) {
      for (const listener of this.listeners) listener.changed(entryKey(change), change)
    }
    return (failed) => {
      this.#accepted.delete(batch)
      if (failed) this.failed()
    }
  }

  /** A complete list was accepted that differs from the old one by `changes`. */
  replaced(changes: readonly Change[], head: CollectionVersion): (failed: boolean) => void {
    for (const { deleted, ...entry } of changes) {
      if (deleted) this.#entries?.delete(entryKey(entry))
      else this.#entries?.set(entryKey(entry), entry)
    }
    for (const listener of this.listeners) {
      for (const change of changes) listener.changed(entryKey(change), change)
      listener.replacedAt(head.version)
    }
    this.#head = head
    this.unsynced = false
    this.#underWay += 1
    const generation = this.generation
    return (failed) => {
      this.#underWay -= 1
      if (failed) this.failed()
      else if (generation === this.generation) this.unfit = this.hasDamage = false
    }
  }

  /**
   * A list of `generation` is about to be sent; later events apply to it. Returns whether the
   * collection missed a write before; `undefined`: the list must not be sent.
   */
  sending(generation: number): { readonly afterMissedWrite: boolean } | undefined {
    if (generation !== this.generation) return undefined
    const afterMissedWrite = this.missedWrite
    this.missedWrite = false
    return { afterMissedWrite }
  }

  failed(): void {
    this.unfit = this.missedWrite = true
    this.#accepted.clear()
    this.reload()
  }

  /** Damaged objects must not count as unchanged. */
  damaged(): void {
    this.hasDamage = true
    this.reload()
  }

  /** Staged objects are lost; stored ones are not. */
  interrupt(): void {
    if (this.listeners.size > 0) this.reload()
  }

  /** The stored state has changed by another way. */
  reload(): void {
    this.generation += 1
    this.forget()
  }

  /** Whether it is fit, or a list in progress will make it so. */
  get #takesIn(): boolean {
    return !this.unfit || this.#underWay > 0
  }

  /** Whether events apply to the stored state. */
  get #follows(): boolean {
    return this.#head !== undefined && this.#takesIn
  }

  /** Applies events as the writer does. Returns the changes. */
  #follow({ changes, version, since }: EventBatch): readonly Change[] {
    if (this.#head && isNewer(since, this.#head.version)) return []
    const followed = changes.filter((change) => this.#note(change))
    if (this.#head) {
      this.#head = { ...this.#head, version: newest(this.#head.version, version) }
    }
    return followed
  }

  /** False: the collection has this change already, or a newer state of the object. */
  #note({ deleted, ...entry }: Change): boolean {
    if (!this.#entries || !this.#head) return true
    if (isPast(entry.version, this.#head.version)) return false
    const key = entryKey(entry)
    const held = this.#entries.get(key)
    if (held && !mayFollow(entry.version, held.version)) return false
    if (deleted) this.#entries.delete(key)
    else this.#entries.set(key, entry)
    return true
  }

  #load(reads: Reads): Map<string, Entry> {
    const entries = new Map<string, Entry>()
    const { head, members } = reads.atOnce(() => {
      const found = reads.head(this.address)
      return { head: found, members: found ? reads.members(found.id) : [] }
    })
    for (const { namespace, name, uid, resourceVersion: version } of members) {
      entries.set(entryKey({ namespace, name }), { namespace, name, uid, version })
    }
    this.#entries = entries
    this.#head = head?.whole ? head : undefined
    this.hasDamage ||= head?.hasDamage ?? false
    // Applying a committed batch again changes nothing.
    for (const batch of this.#head ? this.#accepted : []) this.#follow(batch)
    return entries
  }
}

/** The changes of entries that events of objects bring. */
export const changesOf = (events: readonly WatchEvent[]): Change[] =>
  events.flatMap((event) => {
    if (!isObjectEvent(event)) return []
    const { namespace, name, uid, resourceVersion: version } = event.object
    return [{ namespace, name, uid, version, deleted: event.type === 'DELETED' }]
  })
