import { latest, now } from '../../../base/clock.ts'
import { isObjectEvent, type ObjectEvent, type WatchEvent } from '../../../api/codec/watch.ts'
import type { GVK, GVR } from '../../../api/kube/gvk.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import { newestVersion, type ResourceVersion } from '../../../api/kube/resource-version.ts'
import { everyone, unprovenIdentity, type Identity } from '../../../api/request/identity.ts'
import {
  StoreFailure,
  type ApplyOptions,
  type CollectionKey,
  type ObjectKey,
  type ObjectStore,
  type Partition,
  type Replacement,
  type StoredCollection,
  type StoredList,
  type StoredMember,
  type StoredName,
  type StoredObject,
  type StoredPartition,
  type Withdrawal,
} from '../store.ts'
import { isIn, nameKey, partOf, scopeOf, type Named, type ScopeKey } from '../state/address.ts'
import { markOf, isRecent, mayFollow, newestVersionIn, type Held } from '../state/held.ts'
import type { DiskWork } from './log-writer.ts'
import type { EvictRecord, Removal } from '../state/record.ts'
import { knownObject, isGiven, type Collection, type Scope } from '../state/scope.ts'
import type { StoreParts } from './parts.ts'
import { StagedReplacement } from './replacement.ts'
import { mostStagedOf } from './upkeep.ts'
import type { Composed } from './write-path.ts'

/** A stored collection, measured. */
export interface MeasuredCollection {
  readonly key: CollectionKey
  /** The identities that may read it. */
  readonly readers: readonly string[]
  readonly resourceVersion: string
  /** As in `StoredList`. */
  readonly confirmedAt: number
  readonly objects: number
  /** Of the objects. */
  readonly bytes: number
}

/** The stored collections, as far as they were measured. */
export interface StoreOverview {
  readonly collections: readonly MeasuredCollection[]
  /** How many more are stored. */
  readonly omitted: number
}

/** Reads the state in memory, and bodies from the log; writes records to the log. */
export class LogStore implements ObjectStore {
  readonly #parts: StoreParts
  #closed: Promise<void> | undefined

  constructor(parts: StoreParts) {
    this.#parts = parts
  }

  /** False: the files were removed or replaced, and later writes end with the process. */
  isInPlace(): boolean {
    return this.#parts.folder.isInPlace()
  }

  /** The writes of this process. */
  get diskWork(): DiskWork {
    return { ...this.#parts.log.work }
  }

  /** The size of the log on the disk. */
  get bytes(): number {
    return this.#parts.folder.bytes
  }

  /** The number of collections and objects that missed a write since the disk last took one. */
  get missed(): number {
    return this.#parts.path.missed.size
  }

  /** The stored collections that were confirmed last, the latest first, at most `most`. */
  overview(most = Infinity): StoreOverview {
    const all = [...this.#parts.state.collections()].toSorted((a, b) => b.seenAt - a.seenAt)
    const collections = all.slice(0, most).map((each) => ({
      key: each.key,
      readers: [...each.holders],
      resourceVersion: each.version,
      confirmedAt: each.seenAt,
      objects: each.members.size,
      bytes: each.bytes,
    }))
    return { collections, omitted: all.length - collections.length }
  }

  /** The identities that may read what is stored of an object, or that it is absent. */
  readers(key: ObjectKey): readonly string[] {
    const scope = this.#scopeOf(key)
    if (!scope) return []
    const readers = [...scope.parts()].flatMap(([, { holders }]) => [...holders])
    return [...new Set(readers)].filter((each) => {
      const partition = { ...key.partition, identity: each as Identity }
      return this.get({ ...key, partition }) !== undefined
    })
  }

  get(key: ObjectKey): StoredObject | 'absent' | undefined {
    const scope = this.#scopeOf(key)
    if (!scope) return undefined
    const found = knownObject(scope, key, holderOf(key), this.#parts.state.lostAt(scope.key))
    if (typeof found !== 'object') return found
    const { held, ...known } = found
    const object = this.#read(scope.key, held)
    return object && { ...known, object }
  }

  list(key: CollectionKey, isRead?: (member: StoredMember) => boolean): StoredList | undefined {
    const collection = this.#collectionOf(key)
    if (!collection) return undefined
    const { gvk, version: resourceVersion, extra, seenAt: confirmedAt } = collection
    const { changedAt, listedAt } = collection
    const all = [...collection.members.values()]
    const members = inOrder(isRead ? all.filter(isRead) : all)
    const batches = this.#parts.bodies.batches(collection.key, members)
    return { gvk, resourceVersion, changedAt, listedAt, extra, confirmedAt, batches }
  }

  version(key: CollectionKey): string | undefined {
    return this.#collectionOf(key)?.version
  }

  newestVersion(counts: (group: string, resource: string) => boolean): ResourceVersion | undefined {
    const versions: string[] = []
    for (const scope of this.#parts.state.scopes.values()) {
      if (!counts(scope.key.gvr.group, scope.key.gvr.resource)) continue
      for (const [, { version }] of scope.parts()) versions.push(version)
    }
    return newestVersion(versions)
  }

  collections(partition: Partition, gvr: GVR, namespace: string | undefined): StoredCollection[] {
    const scope = this.#scopeOf({ partition, gvr })
    return scope ? served(scope, partition).filter(({ key }) => isIn(key, namespace)) : []
  }

  partitions(gvr: GVR, reader?: Identity): readonly StoredPartition[] {
    const { group, version, resource } = gvr
    const owner = reader !== undefined && this.#parts.isShared(gvr) ? everyone : reader
    return [...this.#parts.state.scopes.values()]
      .filter(
        ({ key: { partition, gvr: of } }) =>
          of.group === group &&
          of.version === version &&
          of.resource === resource &&
          (owner === undefined || partition.identity === owner),
      )
      .map((scope) => {
        const names = new Map<string, StoredName>()
        const add = ({ namespace, name }: Held, at: number): void => {
          const key = nameKey({ namespace, name })
          const confirmedAt = latest(at, names.get(key)?.confirmedAt ?? 0)
          names.set(key, { namespace, name, confirmedAt })
        }
        for (const [, { members, seenAt }] of scope.parts())
          for (const member of members.values()) add(member, seenAt)
        const partition = { ...scope.key.partition, ...(reader && { identity: reader }) }
        return {
          partition,
          collections: served(scope, partition),
          names: [...names.values()].toSorted(byName),
        }
      })
  }

  copyOf<Key extends Pick<ObjectKey, 'partition' | 'gvr'>>(key: Key): Key {
    const { partition, gvr } = key
    const { identity } = partition
    // That of all callers is such a copy already, as a cacher's key for each event.
    if (identity === everyone || identity === unprovenIdentity || !this.#parts.isShared(gvr))
      return key
    return { ...key, partition: { ...partition, identity: everyone } }
  }

  holds(key: ObjectKey, object: ApiObject): boolean {
    return this.#parts.path.isIdle && this.#isHeld(key, object)
  }

  async put(key: ObjectKey, gvk: GVK, object: ApiObject): Promise<void> {
    const { state, path, bodies } = this.#parts
    const scope = this.#scopeKey(key)
    const holder = holderOf(key)
    const isStored = (): boolean => {
      const record = this.#recordFor(key, object)
      const isOlder = record !== undefined && !mayFollow(object.resourceVersion, record.version)
      return isOlder || this.#isHeld(key, object)
    }
    if (path.isIdle && isStored()) return
    const compose = (): Composed | undefined => {
      // Without versions the later of two counts, and the earlier may be in the same write.
      if (object.resourceVersion !== '' && isStored()) return undefined
      const [confirmedAt, mark] = [now(), markOf(object)]
      return {
        record: { kind: 'put', scope, holder, gvk, confirmedAt, object: mark },
        bodies: [bodies.stored(scope, object)],
      }
    }
    const missed = (): EvictRecord | undefined => {
      const part = nameKey(object)
      const held = state.scope(scope)?.records.get(part)?.held
      if (held && bodies.isHeld(scope, object, held)) return undefined
      return { kind: 'evict', parts: [[scope, part]], version: object.resourceVersion }
    }
    await path.push({ compose, bytes: object.bytes.byteLength, missed })
  }

  async forget(key: ObjectKey): Promise<void> {
    const { namespace, name } = key
    const scope = this.#scopeKey(key)
    const record = { kind: 'forget', scope, object: [namespace, name] } as const
    const { state } = this.#parts
    await this.#remove(() => (state.scope(scope)?.has(nameKey(key)) ? record : undefined))
  }

  replace(key: CollectionKey): Replacement {
    const { maxBytes, ...parts } = this.#parts
    const reader = key.partition.identity
    const mostStaged = mostStagedOf(reader, maxBytes)
    const of = { key: this.copyOf(key), reader, holder: holderOf(key), mostStaged }
    return new StagedReplacement({ ...parts, ...of })
  }

  async apply(
    key: CollectionKey,
    events: readonly WatchEvent[],
    { since = '', previous = true }: ApplyOptions = {},
  ): Promise<readonly (ApiObject | undefined)[]> {
    const collection = this.copyOf(key)
    const changes = events.filter(isObjectEvent)
    const version = newestVersionIn(events)
    if (changes.length === 0 && this.#saysNothing(key, version)) return events.map(() => undefined)
    const { path, bodies } = this.#parts
    const compose = (): Composed => ({
      record: {
        kind: 'apply',
        collection,
        since,
        version,
        confirmedAt: now(),
        types: changes.map(({ type }) => type),
        objects: changes.map(({ object }) => markOf(object)),
      },
      bodies: changes.map(({ object }) => bodies.stored(collection, object)),
    })
    const written = await path.push({
      compose,
      bytes: changes.reduce((sum, { object }) => sum + object.bytes.byteLength, 0),
      durable: changes.some(isDeletion),
      missed: () => {
        const parts = changes.map(({ object }) => [collection, nameKey(object)] as const)
        return { kind: 'evict', parts: [partOf(collection), ...parts], version }
      },
    })
    return this.#previous(collection, events, previous ? (written?.displaced ?? []) : [])
  }

  async withdraw(holders: string, what: Withdrawal): Promise<void> {
    const record = { kind: 'withdraw', holders, what } as const
    const { state } = this.#parts
    await this.#remove(() => (state.withdrawn(record).next().done ? undefined : record))
  }

  async drop(): Promise<void> {
    await this.#remove(() => ({ kind: 'evict', parts: this.#parts.state.parts }))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return (this.#closed ??= this.#close())
  }

  async #close(): Promise<void> {
    const { state, path, log, folder, upkeep, closing, release } = this.#parts
    closing.abort()
    await path.close()
    await upkeep.end()
    await log.close()
    // A read would open the files again.
    state.drop(() => true)
    folder.close()
    release()
  }

  /** After what is being written. Rejects where it is gone from memory alone. */
  async #remove(removal: () => Removal | undefined): Promise<void> {
    const compose = (): Composed | undefined => {
      const record = removal()
      if (record) this.#parts.state.apply(record, [])
      return record && { record }
    }
    await this.#parts.path.push({ compose, alone: true, durable: true })
  }

  /** The record of an object that the identity may read. */
  #recordFor(key: ObjectKey, object: ApiObject): Collection | undefined {
    const record = this.#scopeOf(key)?.records.get(nameKey(object))
    return record && isGiven(record, holderOf(key)) ? record : undefined
  }

  #isHeld(key: ObjectKey, object: ApiObject): boolean {
    const record = this.#recordFor(key, object)
    if (record?.held === undefined || !isRecent(record.confirmedAt)) return false
    return this.#parts.bodies.isHeld(this.#scopeKey(key), object, record.held)
  }

  /** Whether bookmarks only confirm a collection at its version, which was recorded recently. */
  #saysNothing(key: CollectionKey, version: string): boolean {
    const collection = this.#collectionOf(key)
    if (version === '' || !collection) return true
    if (collection.version !== version || !isRecent(collection.confirmedAt)) return false
    collection.seenAt = latest(collection.seenAt, now())
    return true
  }

  /** The previous states for each event; `displaced` has them for those of objects. */
  #previous(
    scope: ScopeKey,
    events: readonly WatchEvent[],
    displaced: readonly (Held | undefined)[],
  ): readonly (ApiObject | undefined)[] {
    let at = 0
    return events.map((event) => {
      const before = isObjectEvent(event) ? displaced[at++] : undefined
      return before && this.#read(scope, before)
    })
  }

  #scopeOf(key: Pick<ObjectKey, 'partition' | 'gvr'>): Scope | undefined {
    return this.#parts.state.scope(this.#scopeKey(key))
  }

  #scopeKey(key: Pick<ObjectKey, 'partition' | 'gvr'>): ScopeKey {
    return scopeOf(this.copyOf(key))
  }

  /** `undefined`, too, where the caller may not have it, as far as that is known. */
  #collectionOf(key: CollectionKey): Collection | undefined {
    const found = this.#parts.state.collection(this.copyOf(key))
    return found && isGiven(found, holderOf(key)) ? found : undefined
  }

  /** `undefined`: it is damaged, or the disk cannot be read, which is reported. */
  #read(scope: ScopeKey, held: Held): ApiObject | undefined {
    try {
      return this.#parts.bodies.read(scope, [held])[0]
    } catch (cause) {
      if (!(cause instanceof StoreFailure)) throw cause
      this.#parts.report('read', cause)
      return undefined
    }
  }
}

/** Whose grants count; `undefined`: all of a copy for all callers is the reader's. */
const holderOf = ({ partition }: Pick<ObjectKey, 'partition'>): Identity | undefined =>
  partition.identity === everyone ? undefined : partition.identity

/** What the partition's identity may have. */
const served = (scope: Scope, partition: Partition): StoredCollection[] =>
  [...scope.collections.values()]
    .filter((each) => isGiven(each, holderOf({ partition })))
    .map(({ key, version }) => ({ key: { ...key, partition }, resourceVersion: version }))

const isDeletion = ({ type }: ObjectEvent): boolean => type === 'DELETED'

/** Sorted when they are read: many want the head of a list alone. */
function* inOrder(members: readonly Held[]): Iterable<Held> {
  yield* members.toSorted(byName)
}

const byName = (a: Named, b: Named): number => {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1
  return a.name === b.name ? 0 : a.name < b.name ? -1 : 1
}
