import { now } from '../../../base/clock.ts'
import type { WatchEvent } from '../../../api/codec/watch.ts'
import type { GVK, GVR } from '../../../api/kube/gvk.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import { isNewer, type ResourceVersion } from '../../../api/kube/resource-version.ts'
import type { Identity } from '../../../api/request/identity.ts'
import {
  StoreFailure,
  type ApplyOptions,
  type Partition,
  type CollectionKey,
  type DocumentKey,
  type StoredCollection,
  type StoredPartition,
  type StoredDocument,
  type ObjectKey,
  type ObjectStore,
  type Replacement,
  type StoredChanges,
  type DocumentContent,
  type StoredList,
  type StoredObject,
} from '../store.ts'
import { addressOf, scopeOf } from './address.ts'
import { newestVersionIn, toApply, toPrevious } from './apply-operation.ts'
import { changesOf, type CollectionState } from './collection-state.ts'
import { Collections } from './collections.ts'
import { Connection, type ConnectionParts } from './connection.ts'
import { Damage } from './damage.ts'
import { diskWorkOf, type DiskWork, type SharedDiskWork } from './disk-work.ts'
import { History } from './history.ts'
import { pack, type Operation } from './messages.ts'
import type { FindReferencedObjects } from '../named-object.ts'
import type { Confirmation, Reads } from './reads.ts'
import { overviewOf, type StoreOverview } from './overview.ts'
import { isRecent } from './recent.ts'
import { ScopeMarks } from './scope-marks.ts'
import { StagedReplacement, Staging } from './replacement.ts'
import { reportMaintenance } from './faults.ts'
import { IdleSweep } from './idle-sweep.ts'
import { Bodies, View } from './view.ts'
import { WritePath, type WritePathParts } from './write-path.ts'

export interface Parts
  extends
    ConnectionParts,
    Omit<WritePathParts, 'connection' | 'collections' | 'referencedObjects'> {
  readonly referencedObjects: FindReferencedObjects
  readonly diskWork: SharedDiskWork
  /** Bytes that lists in progress may have staged for one identity. */
  readonly stagedBytes: number
  /** The last process did not end regularly: its last commits may not be synced. */
  readonly crashed: boolean
}

/** Reads on this thread; writes go through the queue to the writer thread. */
export class SqliteStore implements ObjectStore {
  readonly #parts: Parts
  readonly #connection: Connection
  readonly #collections: Collections
  readonly #writing: WritePath
  readonly #damage: Damage
  readonly #view: View
  readonly #history: History
  readonly #scopeMarks: ScopeMarks
  readonly #sweep: IdleSweep
  readonly #staging: Staging
  #replacements = 0
  /**
   * Removals in progress: until they are committed, the stored state does not show whether a put
   * has to write.
   */
  #forgetting = 0
  /** Puts in progress: reads do not show yet what a `forget` has to remove. */
  #putting = 0
  #closed: Promise<void> | undefined

  constructor(parts: Parts) {
    const { report, snapshots } = parts
    this.#parts = parts
    const connection = new Connection(parts)
    const collections = new Collections(parts.crashed)
    const writing = new WritePath({
      ...parts,
      connection,
      collections,
      referencedObjects: () => parts.referencedObjects(this),
    })
    const write = (operation: Operation): Promise<void> => writing.write(operation)
    const damage = new Damage({ collections, write, report })
    const bodies = new Bodies(connection, damage)
    this.#connection = connection
    this.#collections = collections
    this.#staging = new Staging(parts.stagedBytes)
    this.#writing = writing
    this.#damage = damage
    const served = { collections, damage, bodies, snapshots }
    this.#view = new View(served)
    this.#history = new History(served)
    this.#scopeMarks = new ScopeMarks(connection, write)
    this.#sweep = new IdleSweep({
      write,
      idle: () => connection.read((reads) => reads.idleIdentities()) ?? [],
      forget: (identity) => this.#forgetIdentity(identity),
      onFailed: (cause) => reportMaintenance(report, cause),
    })
  }

  /** False: the file was removed or replaced, and later writes end with the process. */
  isInPlace(): boolean {
    return this.#connection.isInPlace()
  }

  /** The writes of this process. */
  get diskWork(): DiskWork {
    return diskWorkOf(this.#parts.diskWork)
  }

  /** The number of unfit collections, which failed writes of this process have left. */
  get incompleteCollections(): number {
    return this.#collections.unfit
  }

  /**
   * When an API server last confirmed a collection of each resource, oldest first; empty where that
   * cannot be read.
   */
  confirmations(): readonly Confirmation[] {
    return this.#connection.read((reads) => reads.confirmations()) ?? []
  }

  /**
   * The stored collections, at most `most`, measured in time slices; `undefined` where they cannot
   * be read.
   */
  overview(most: number): Promise<StoreOverview | undefined> {
    return overviewOf(this.#connection, this.#collections, most)
  }

  get(key: ObjectKey): StoredObject | 'absent' | undefined {
    return this.#readOf(key.partition, (reads) => this.#view.get(reads, key))
  }

  list(key: CollectionKey): StoredList | undefined {
    return this.#readOf(key.partition, (reads) => this.#view.list(reads, key))
  }

  confirmedAt(key: CollectionKey): number | undefined {
    return this.#readOf(key.partition, (reads) => this.#view.confirmedAt(reads, key))
  }

  changes(key: CollectionKey, since: string): StoredChanges | 'expired' | undefined {
    return this.#readOf(key.partition, (reads) => this.#history.changes(reads, key, since))
  }

  version(key: CollectionKey): string | undefined {
    return this.#readOf(key.partition, (reads) => this.#view.version(reads, key))
  }

  committedVersion(key: CollectionKey): string | undefined {
    return this.#readOf(key.partition, (reads) => this.#view.committedVersion(reads, key))
  }

  async settled(key: CollectionKey): Promise<void> {
    await this.#collections.known(addressOf(key))?.settled()
  }

  observedVersion(identity: Identity, { group, resource }: GVR): ResourceVersion | undefined {
    return this.#connection.read((reads) => reads.observedVersion(identity, group, resource))
  }

  holdsFor(prefix: string): boolean {
    return this.#connection.read((reads) => reads.holdsFor(prefix)) ?? true
  }

  isContradicted(key: CollectionKey): boolean {
    return this.#connection.read((reads) => reads.isContradicted(addressOf(key))) ?? false
  }

  collections(partition: Partition, gvr: GVR, namespace: string | undefined): StoredCollection[] {
    const known = this.#readOf(partition, (reads) =>
      this.#view.collections(reads, partition, gvr, namespace),
    )
    return known ?? []
  }

  names(partition: Partition, gvr: GVR): readonly { namespace: string; name: string }[] {
    return this.#connection.read((reads) => reads.names(scopeOf(partition, gvr))) ?? []
  }

  partitions(gvr: GVR): readonly StoredPartition[] {
    return this.#connection.read((reads) => this.#view.partitions(reads, gvr)) ?? []
  }

  document({ identity, path, representation }: DocumentKey): StoredDocument | undefined {
    this.#sweep.used(identity)
    const key = [identity, path, representation] as const
    const found = this.#connection.read((reads) => reads.document(key))
    if (found !== 'damaged') return found
    this.#damage.document(key)
    return undefined
  }

  documents(
    identity: Identity,
    most: number,
  ): readonly (DocumentKey & Pick<StoredDocument, 'confirmedAt'>)[] {
    const rows = this.#connection.read((reads) => reads.documents(identity, most)) ?? []
    return rows.map((row) => ({ identity, ...row }))
  }

  async put(key: ObjectKey, gvk: GVK, object: ApiObject): Promise<void> {
    const isRecorded =
      this.#forgetting === 0 &&
      this.#connection.read((reads) =>
        this.#view.hasRecorded(reads, scopeOf(key.partition, key.gvr), object),
      )
    if (isRecorded) this.#sweep.used(key.partition.identity)
    else await this.#put(key, gvk, object, false)
  }

  async putRestored(key: ObjectKey, gvk: GVK, object: ApiObject): Promise<void> {
    this.#forgetting += 1
    try {
      await this.#put(key, gvk, object, true)
    } finally {
      this.#forgetting -= 1
    }
  }

  async #put(
    { partition, gvr }: ObjectKey,
    gvk: GVK,
    object: ApiObject,
    restored: boolean,
  ): Promise<void> {
    this.#sweep.used(partition.identity)
    const scope = scopeOf(partition, gvr)
    this.#scopeMarks.note(scope, partition)
    this.#putting += 1
    try {
      await this.#writing.write(
        { kind: 'put', scope, gvk, objects: pack([object]), restored, confirmedAt: now() },
        { bytes: object.bytes.byteLength },
      )
    } finally {
      this.#putting -= 1
    }
  }

  async forget(key: ObjectKey, below: ResourceVersion | '' = ''): Promise<void> {
    if (below !== '' && this.#putting === 0 && !this.#hasBefore(key, below)) return
    const { partition, gvr, namespace, name } = key
    this.#forgetting += 1
    try {
      const scope = scopeOf(partition, gvr)
      await this.#writing.write({ kind: 'forget', scope, namespace, name, below })
    } finally {
      this.#forgetting -= 1
    }
  }

  /** Whether a state of before `version` is stored. */
  #hasBefore(key: ObjectKey, version: ResourceVersion): boolean {
    const stored = this.get(key)
    return typeof stored === 'object' && isNewer(version, stored.confirmedVersion)
  }

  replace(key: CollectionKey): Replacement {
    this.#sweep.used(key.partition.identity)
    this.#replacements += 1
    this.#collections.trim()
    const state = this.#stateOf(key)
    return new StagedReplacement({
      state,
      queue: this.#writing.queue,
      reads: this.#connection.reads,
      staging: this.#staging,
      replacement: this.#replacements,
      missed: (failure) => this.#writing.settled(failure, state),
    })
  }

  async apply(
    key: CollectionKey,
    events: readonly WatchEvent[],
    { since = '', previous = true }: ApplyOptions = {},
  ): Promise<readonly (ApiObject | undefined)[]> {
    this.#sweep.used(key.partition.identity)
    const state = this.#stateOf(key)
    const changes = changesOf(events)
    const version = newestVersionIn(events)
    if (changes.length === 0 && (version === '' || this.#saysTheSame(state, version))) {
      await state.settled()
      return events.map(() => undefined)
    }
    const settle = state.accepted({ changes, version, since })
    const apply = toApply(state.address, events, { since, previous, version })
    const displaced = await state.track(
      this.#writing.queue.push({
        operation: () => ({ ...apply, whole: !state.missedWrite }),
        bytes: apply.objects.bytes.byteLength,
        settled: (failure) => {
          settle(failure !== undefined)
          this.#writing.settled(failure, state)
        },
      }),
    )
    for (const each of displaced?.damaged ?? []) this.#damage.object(state.address.scope, each)
    return toPrevious(events, displaced)
  }

  async drop(): Promise<void> {
    for (;;) {
      const identities = this.#connection.read((reads) => reads.identities())
      if (identities === undefined) throw new StoreFailure('what is to be dropped cannot be read')
      const [identity] = identities
      if (identity === undefined) return
      await this.#forgetIdentity(identity, true)
    }
  }

  async putDocument(key: DocumentKey, { mediaType, body }: DocumentContent): Promise<void> {
    const stored = this.document(key)
    if (
      stored?.mediaType === mediaType &&
      Buffer.compare(stored.body, body) === 0 &&
      isRecent(stored.confirmedAt)
    )
      return
    const row = [key.identity, key.path, key.representation] as const
    const copy = new Uint8Array(body)
    await this.#writing.write(
      { kind: 'document', key: row, mediaType, body: copy, confirmedAt: now() },
      { bytes: copy.byteLength },
    )
    this.#damage.documentHealed(row)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return (this.#closed ??= this.#close())
  }

  /**
   * Deletes the data of identities that were not used for long; runs once a day. `day` is counted
   * from the epoch.
   */
  sweep(day?: number): Promise<void> {
    return this.#sweep.run(day)
  }

  #readOf<T>({ identity }: Partition, read: (reads: Reads) => T): T | undefined {
    this.#sweep.used(identity)
    return this.#connection.read(read)
  }

  async #close(): Promise<void> {
    this.#connection.end()
    this.#sweep[Symbol.dispose]()
    await this.#writing.drain()
    this.#connection.close()
    await this.#writing[Symbol.asyncDispose]()
    this.#connection.closeBefore()
    this.#parts.storeDirectory[Symbol.dispose]()
  }

  /** Whether bookmarks only confirm a collection at its version, which was written recently. */
  #saysTheSame(state: CollectionState, version: string): boolean {
    const isSame = this.#connection.read(
      (reads) =>
        state.version(reads) === version && isRecent(reads.head(state.address)?.confirmedAt ?? 0),
    )
    if (isSame !== true) return false
    state.confirmed(now())
    return true
  }

  /** The state of a collection that is about to be written to. */
  #stateOf(key: CollectionKey): CollectionState {
    const state = this.#collections.of(addressOf(key))
    this.#scopeMarks.note(state.address.scope, key.partition)
    return state
  }

  /**
   * One step. It commits alone: no operation that was prepared from the deleted rows may follow it.
   */
  async #forgetIdentity(identity: string, used = false): Promise<void> {
    await this.#writing.write(
      { kind: 'forget-identity', identity, used },
      {
        alone: true,
        settled: (failure) => {
          if (failure) return
          this.#connection.reads.forgetScopes()
          this.#scopeMarks.forget()
          this.#collections.reload(identity)
        },
      },
    )
  }
}
