import { latest } from '../../../base/clock.ts'
import type { WatchEvent } from '../../../api/codec/watch.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import type { CollectionAddress } from './address.ts'
import type { NamePair } from './messages.ts'
import type { Reads } from './reads.ts'
import { isPast, mayFollow, newest } from './versions.ts'

/** What a collection holds of one object, as far as telling a change needs it. */
export interface Entry {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: string
}

/** An entry that came, or one that went at the version named. */
export interface Change extends Entry {
  readonly deleted: boolean
}

export interface CollectionVersion {
  readonly gvk: GVK
  readonly version: string
  readonly extra: string
}

/** What one `apply` brings. */
export interface EventBatch {
  readonly changes: readonly Change[]
  /** The newest that it names; '' for none. */
  readonly version: string
  /** At which its watch takes the collection to be; '' where it does not say. */
  readonly since: string
}

/** Names may hold any character, so that a separator would not do. */
export const entryKey = ({ namespace, name }: { namespace: string; name: string }): string =>
  `${namespace.length}/${namespace}${name}`

export const pairOf = ({ namespace, name }: Entry): NamePair => [namespace, name]

/** Who is told what happens to the collection while a list of it is being staged. */
export interface ChangeListener {
  changed(key: string, change: Change): void
  replacedAt(version: string): void
}

/**
 * What is known of one collection in use, as it will be once everything accepted is committed: what
 * a new list is compared with, so that unchanged objects need not be written. When a write fails,
 * that expectation is void and the collection unfit until a list heals it:
 *
 * ```
 *            unfit  misses  lists under way
 * fit         no     no      any              served as committed; what it is told follows that, or
 * the list under way unfit       yes    yes     none             not served; what it is told
 * reaches only the records of single objects relisted    yes    yes     accepted         not
 * served; what it is told counts as told to the list healing     yes    no      sent
 * the same, and the writer, who has the list by then, takes it in
 *
 * fit --failed--> unfit --replaced--> relisted --sending--> healing --committed--> fit
 *                   ^----------failed----'---------failed------'
 * ```
 *
 * What was worked out from what is stored holds within one `generation`, which a failure ends, and
 * whatever else makes what is stored another (`damaged`, `interrupt`, `reload`). A list of an
 * earlier one is not sent any more, which is a failure too. If it was sent before, it counts as
 * under way until it is answered, and its commit makes nothing fit: the collection is unfit then
 * though the writer follows.
 *
 * Beside this stand `holes`, from the finding of damage to the commit of the next list of the same
 * generation, and `loose`, from events that delete nothing to the next that do, or to a list.
 */
export class CollectionState {
  readonly address: CollectionAddress
  readonly listeners = new Set<ChangeListener>()
  /** See above: what was worked out in an earlier one does not hold. */
  generation = 0
  /**
   * A write failed, and no whole list has been committed since: what is stored is not to be served.
   */
  unfit = false
  /**
   * The same for the writer, to whom a list counts as soon as it is sent: what follows it goes to
   * the new one.
   */
  missedWrite = false
  /** Something it should hold was found damaged; the next list heals it. */
  hasDamage = false
  /**
   * A power cut may take the newest of what it was told: a list that says the same is to be written
   * for it to stay.
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

  constructor(address: CollectionAddress, loose: boolean) {
    this.address = address
    this.unsynced = loose
  }

  /** When the cloud last confirmed it in this run, in milliseconds since the epoch; 0: not yet. */
  get confirmedAt(): number {
    return this.#confirmedAt
  }

  confirmed(at: number): void {
    this.#confirmedAt = this.#confirmedAt === 0 ? at : latest(this.#confirmedAt, at)
  }

  get size(): number {
    return this.#entries?.size ?? 0
  }

  /** Whether there is nothing to know of it that the tables do not say. */
  get idle(): boolean {
    return this.forgettable && this.#accepted.size === 0 && !this.unfit && !this.hasDamage
  }

  /** Whether its entries may be forgotten: they can be read again. */
  get forgettable(): boolean {
    return this.listeners.size === 0 && this.#underWay === 0
  }

  forget(): void {
    this.#entries = undefined
    this.#head = undefined
  }

  /** `undefined`: no whole list is stored, or it missed something since. */
  head(reads: Reads): CollectionVersion | undefined {
    this.entries(reads)
    return this.#follows ? this.#head : undefined
  }

  /** The version of what `head` tells, found without reading the entries. */
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

  /** What it holds, read when first needed and brought up to what was accepted since. */
  entries(reads: Reads): ReadonlyMap<string, Entry> {
    return this.#entries ?? this.#load(reads)
  }

  /** Resolves when the write `promise` stands for, and all before it, have been answered. */
  track<T>(promise: Promise<T>): Promise<T> {
    this.#last = promise.catch(() => undefined)
    return promise
  }

  /** Resolves when everything accepted has been answered; see `generation` for how. */
  async settled(): Promise<void> {
    await this.#last
  }

  /** Events were accepted; the result is to be called when it is known how that went. */
  accepted(batch: EventBatch): (failed: boolean) => void {
    if (this.#takesIn) this.#accepted.add(batch)
    this.unsynced = !batch.changes.some(({ deleted }) => deleted)
    for (const change of this.#follows ? this.#follow(batch) : batch.changes) {
      for (const witness of this.listeners) witness.changed(entryKey(change), change)
    }
    return (failed) => {
      this.#accepted.delete(batch)
      if (failed) this.failed()
    }
  }

  /** A whole list was accepted in place of the old one, which differs from it by `changes`. */
  replaced(changes: readonly Change[], head: CollectionVersion): (failed: boolean) => void {
    for (const { deleted, ...entry } of changes) {
      if (deleted) this.#entries?.delete(entryKey(entry))
      else this.#entries?.set(entryKey(entry), entry)
    }
    for (const witness of this.listeners) {
      for (const change of changes) witness.changed(entryKey(change), change)
      witness.replacedAt(head.version)
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
   * A list worked out in `generation` is about to be sent; what is sent after it is of the new
   * list. Returns whether the collection missed a write before it; `undefined`: it is not to be
   * sent.
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

  /** Objects that were found damaged are not to be taken for unchanged. */
  damaged(): void {
    this.hasDamage = true
    this.reload()
  }

  /** What was staged is lost; what is stored stands. */
  interrupt(): void {
    if (this.listeners.size > 0) this.reload()
  }

  /** What is stored is not what it was: what was worked out from it does not hold. */
  reload(): void {
    this.generation += 1
    this.forget()
  }

  /** Whether it is fit, or a list is under way that will make it so. */
  get #takesIn(): boolean {
    return !this.unfit || this.#underWay > 0
  }

  /** Whether events reach what is stored. */
  get #follows(): boolean {
    return this.#head !== undefined && this.#takesIn
  }

  /** As the writer does it: returns what changed. */
  #follow({ changes, version, since }: EventBatch): readonly Change[] {
    if (this.#head && isNewer(since, this.#head.version)) return []
    const followed = changes.filter((change) => this.#note(change))
    if (this.#head) {
      this.#head = { ...this.#head, version: newest(this.#head.version, version) }
    }
    return followed
  }

  /** Returns false for what the collection was told before, or what is older than what it holds. */
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
    // Committed already or not: to go through them again leads to the same.
    for (const batch of this.#head ? this.#accepted : []) this.#follow(batch)
    return entries
  }
}

/** What events say of entries; bookmarks and errors say nothing. */
export const changesOf = (events: readonly WatchEvent[]): Change[] =>
  events.flatMap((event) => {
    if (event.type === 'BOOKMARK' || event.type === 'ERROR') return []
    const { namespace, name, uid, resourceVersion: version } = event.object
    return [{ namespace, name, uid, version, deleted: event.type === 'DELETED' }]
  })
