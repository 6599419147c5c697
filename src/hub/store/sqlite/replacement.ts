import type { ListBatch } from '../../../api/codec/list.ts'
import { now } from '../../../base/clock.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { StoreFailure, type CollectionHead, type Replacement } from '../store.ts'
import {
  entryKey,
  pairOf,
  type Change,
  type CollectionState,
  type CollectionVersion,
  type Entry,
} from './collection-state.ts'
import { pack, type CommitList, type Operation } from './messages.ts'
import { hasQuota, rowBytes } from './quotas.ts'
import type { Reads } from './reads.ts'
import { isRecent } from './recent.ts'
import { isAtLeast, newest } from './versions.ts'
import type { WriteQueue } from './write-queue.ts'

/** Bytes staged in one operation. */
const stageBytes = 256 << 10

export interface ReplacementParts {
  readonly state: CollectionState
  readonly queue: WriteQueue
  readonly reads: Reads
  readonly staging: Staging
  /** Identifies the list among others in progress. */
  readonly replacement: number
  /** Called for every failed write. */
  readonly missed: (failure: StoreFailure) => void
}

/**
 * A list in progress. Only objects that differ from the collection's are staged; one small commit
 * at the end makes the list the collection. Events that are newer than the list and were applied
 * before that commit survive it.
 */
export class StagedReplacement implements Replacement {
  readonly #parts: ReplacementParts
  readonly #state: CollectionState
  readonly #generation: number
  /** The objects of the list, and those of them that were staged. */
  readonly #listed = new Map<string, Entry>()
  readonly #staged = new Map<string, Entry>()
  readonly #meanwhile = new Map<string, Change>()
  #replacedAt = ''
  #stages = 0
  #stagedBytes = 0
  #failure: StoreFailure | undefined
  #over = false

  constructor(parts: ReplacementParts) {
    const { state } = parts
    this.#parts = parts
    this.#state = state
    state.listeners.add(this)
    this.#generation = state.generation
    try {
      // The entries at the start tell later changes from earlier ones.
      this.#entries()
    } catch {
      // `add` throws this, too.
    }
  }

  changed(key: string, change: Change): void {
    this.#meanwhile.set(key, change)
  }

  replacedAt(version: string): void {
    this.#replacedAt = newest(this.#replacedAt, version)
  }

  async add({ objects }: ListBatch): Promise<void> {
    this.#check()
    const entries = this.#entries()
    let changed: ApiObject[] = []
    let bytes = 0
    for (const object of objects) {
      const { namespace, name, uid, resourceVersion: version } = object
      const entry = { namespace, name, uid, version }
      const key = entryKey(entry)
      const same = isSame(entry, entries.get(key)) && !this.#staged.has(key)
      this.#listed.set(key, entry)
      if (same) continue
      this.#staged.set(key, entry)
      changed.push(object)
      bytes += object.bytes.byteLength
      if (bytes >= stageBytes) {
        this.#stage(changed, bytes)
        changed = []
        bytes = 0
      }
    }
    if (changed.length > 0) this.#stage(changed, bytes)
    await this.#parts.queue.room()
    this.#check()
  }

  remove(of: { readonly namespace: string; readonly name: string }): void {
    this.#check()
    this.#listed.delete(entryKey(of))
  }

  async commit(head: CollectionHead): Promise<void> {
    this.#check()
    const entries = this.#entries()
    this.#end()
    const confirmedAt = now()
    // A newer list was accepted meanwhile, and replaces this one.
    if (isNewer(this.#replacedAt, head.resourceVersion)) {
      await this.#discard()
      return this.#state.settled()
    }
    const before = this.#state.head(this.#parts.reads)
    const newer = this.#newer(head)
    const commitList = this.#commitList(head, entries, newer, confirmedAt)
    if (!before && newer.size > 0) {
      await this.#discard()
      throw new StoreFailure(
        'events newer than the list came before it was stored, and were not kept',
      )
    }
    const next = { gvk: head.gvk, version: commitList.version, extra: head.extra }
    const same = this.#stages === 0 && commitList.removed.length === 0 && isSameHead(before, next)
    const isKept = same && !this.#state.hasDamage && !this.#state.unsynced
    if (isKept && isRecent(this.#confirmedAt())) await this.#state.settled()
    else await this.#send(commitList, next)
    this.#compare()
    this.#state.confirmed(confirmedAt)
  }

  async #send(commitList: CommitList, next: CollectionVersion): Promise<void> {
    const generation = this.#generation
    const state = this.#state
    const settle = state.replaced(this.#changes(commitList), next)
    await state.track(
      this.#parts.queue.push({
        operation: () => {
          const sent = state.sending(generation)
          return sent && { ...commitList, ...sent }
        },
        bytes: 0,
        settled: (failure) => {
          settle(failure !== undefined)
          if (failure) this.#parts.missed(failure)
        },
      }),
    )
  }

  /** Changes by events and other lists that are newer than this list. */
  #newer(head: CollectionHead): ReadonlyMap<string, Change> {
    return new Map(
      [...this.#meanwhile].filter(([key, change]) => {
        const listed = this.#listed.get(key)
        return listed
          ? !isNewer(listed.version, change.version)
          : !change.deleted && !isAtLeast(head.resourceVersion, change.version)
      }),
    )
  }

  /** The operation after which the collection holds the list, and newer changes. */
  #commitList(
    head: CollectionHead,
    entries: ReadonlyMap<string, Entry>,
    newer: ReadonlyMap<string, Change>,
    confirmedAt: number,
  ): CommitList {
    let version: string = head.resourceVersion
    for (const change of newer.values()) version = newest(version, change.version)
    return {
      kind: 'commit-list',
      collection: this.#state.address,
      replacement: this.#parts.replacement,
      overtaken: [...this.#staged].flatMap(([key, entry]) =>
        newer.has(key) || !this.#listed.has(key) ? [pairOf(entry)] : [],
      ),
      removed: [...entries].flatMap(([key, entry]) =>
        this.#listed.has(key) || newer.has(key) ? [] : [pairOf(entry)],
      ),
      gvk: head.gvk,
      version,
      listed: head.resourceVersion,
      extra: head.extra,
      confirmedAt,
      afterMissedWrite: false,
    }
  }

  #changes({ removed, overtaken, version }: CommitList): Change[] {
    const left = new Set(overtaken.map(([namespace, name]) => entryKey({ namespace, name })))
    return [
      ...removed.map(([namespace, name]) => ({ namespace, name, uid: '', version, deleted: true })),
      ...[...this.#staged].flatMap(([key, entry]) =>
        left.has(key) ? [] : [{ ...entry, deleted: false }],
      ),
    ]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#over) return
    this.#end()
    await this.#discard()
  }

  #entries(): ReadonlyMap<string, Entry> {
    try {
      return this.#state.entries(this.#parts.reads)
    } catch (cause) {
      throw new StoreFailure('the stored collection cannot be read', { cause })
    }
  }

  /** As on the disk, for the next process. */
  #confirmedAt(): number {
    try {
      return this.#parts.reads.head(this.#state.address)?.confirmedAt ?? 0
    } catch (cause) {
      throw new StoreFailure('the confirmation time of the collection cannot be read', { cause })
    }
  }

  #check(): void {
    if (this.#over) throw new Error('the list has been committed or disposed of')
    if (this.#failure) throw this.#failure
    this.#compare()
  }

  #compare(): void {
    if (this.#generation !== this.#state.generation) {
      throw new StoreFailure('an earlier write of the collection failed')
    }
  }

  #end(): void {
    this.#over = true
    this.#state.listeners.delete(this)
    this.#parts.staging.remove(this.#identity, this.#stagedBytes)
    this.#stagedBytes = 0
  }

  get #identity(): string {
    return this.#state.address.scope[0]
  }

  /** Throws a `StoreFailure` where the identity has too much staged. */
  #stage(objects: readonly ApiObject[], bytes: number): void {
    const weight = bytes + objects.length * rowBytes
    this.#parts.staging.add(this.#identity, weight)
    this.#stagedBytes += weight
    this.#stages += 1
    const operation: Operation = {
      kind: 'stage',
      collection: this.#state.address,
      replacement: this.#parts.replacement,
      objects: pack(objects),
    }
    const settled = (failure?: StoreFailure): void => {
      if (!failure) return
      this.#failure ??= failure
      this.#state.failed()
      this.#parts.missed(failure)
    }
    // `add` or `commit` throws this, too.
    this.#parts.queue.push({ operation: () => operation, bytes, settled }).catch(() => undefined)
  }

  async #discard(): Promise<void> {
    if (this.#stages === 0) return
    const operation: Operation = {
      kind: 'discard',
      collection: this.#state.address,
      replacement: this.#parts.replacement,
    }
    // Remaining staged objects are deleted when the store is opened again.
    await this.#parts.queue.push({ operation: () => operation, bytes: 0 }).catch(() => undefined)
  }
}

const isSame = (entry: Entry, held: Entry | undefined): boolean =>
  entry.version !== '' && entry.version === held?.version && entry.uid === held.uid

const isSameHead = (before: CollectionVersion | undefined, next: CollectionVersion): boolean =>
  before !== undefined &&
  before.version === next.version &&
  before.extra === next.extra &&
  before.gvk.kind === next.gvk.kind &&
  before.gvk.version === next.gvk.version &&
  before.gvk.group === next.gvk.group

/**
 * Counts the staged bytes of each identity. Staged objects cannot be evicted, and a caller that
 * reads many lists slowly must not fill the store with them.
 */
export class Staging {
  readonly #maxBytes: number
  readonly #bytes = new Map<string, number>()

  /** `maxBytes`: of one identity. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Throws a `StoreFailure` where the identity has too much staged. */
  add(identity: string, bytes: number): void {
    const staged = (this.#bytes.get(identity) ?? 0) + bytes
    if (hasQuota(identity) && staged > this.#maxBytes) {
      throw new StoreFailure(
        `the lists in progress of ${identity} take more than ${this.#maxBytes} bytes`,
      )
    }
    this.#bytes.set(identity, staged)
  }

  /** They became members, or were given up. */
  remove(identity: string, bytes: number): void {
    const left = (this.#bytes.get(identity) ?? 0) - bytes
    if (left > 0) this.#bytes.set(identity, left)
    else this.#bytes.delete(identity)
  }
}
