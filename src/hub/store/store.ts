import type { WatchEvent } from '../../api/codec/watch.ts'
import type { ListBatch } from '../../api/codec/list.ts'
import type { ObjectOfKind } from '../../api/codec/object.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { ResourceVersion } from '../../api/kube/resource-version.ts'
import type { RepresentationKey } from '../../api/request/representation.ts'
import type { Identity } from '../../api/request/identity.ts'

/**
 * A part of the store: what one identity may read in one representation. Of most resources the
 * store keeps one copy for all, and shows each identity what an API server has given it (`put`,
 * `replace`). Nothing is converted, but for a person who is root at the node (`Reach`).
 */
export interface Partition {
  readonly identity: Identity
  readonly representation: RepresentationKey
}

export interface ObjectKey {
  readonly partition: Partition
  readonly gvr: GVR
  /** Empty for cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
}

/**
 * The collection that a list or watch covers. The component decides whether it is recorded and
 * which filters apply; it is not part of the key.
 */
export interface CollectionKey {
  readonly partition: Partition
  readonly gvr: GVR
  /** Absent: all namespaces, or a cluster-scoped resource. */
  readonly namespace?: string
  /** As `canonicalLabelSelector` and `canonicalFieldSelector` return it; '' selects everything. */
  readonly labelSelector: string
  readonly fieldSelector: string
}

/** A collection without its objects. */
export interface StoredCollection {
  readonly key: CollectionKey
  readonly resourceVersion: string
}

/** `confirmedAt`: as in `StoredObject`. */
export interface StoredName {
  readonly namespace: string
  readonly name: string
  readonly confirmedAt: number
}

/** The content of a partition for one resource, without the objects. */
export interface StoredPartition {
  readonly partition: Partition
  /** Of any namespace. */
  readonly collections: readonly StoredCollection[]
  /** The objects of which a state is stored, in a record of its own or in a collection. */
  readonly names: readonly StoredName[]
}

/** What is known of a stored object without its bytes. */
export interface StoredMember {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: string
}

export interface StoredObject extends ObjectOfKind {
  /**
   * The version up to which the object is known not to have changed: its own, or that of a
   * collection that holds it.
   */
  readonly confirmedVersion: string
  /**
   * When an API server last confirmed it, in a get or in a collection that holds it, accurate to
   * some minutes, in milliseconds since the epoch; 0: not known.
   */
  readonly confirmedAt: number
}

/** Is read in time: the store keeps its bodies for a while only. */
export interface StoredList {
  /** The kind of the list (`PodList`) as the API server sent it. */
  readonly gvk: GVK
  /** The newest of the versions of the list and of later events and bookmarks. */
  readonly resourceVersion: string
  /**
   * The version of the last event or list that changed it, and the one at which it was last
   * listed, or given for an older list: what came and went before is not known. Absent: neither is.
   */
  readonly changedAt?: string
  readonly listedAt?: string
  readonly extra: string
  /**
   * When an API server last confirmed it by a list, event or bookmark, in milliseconds since the
   * epoch.
   */
  readonly confirmedAt: number
  /**
   * Ordered by namespace and name. Read in batches, so that a long list does not block other
   * requests. Iterated once: the collection as of the call of `list`, whatever is written later.
   * Throws a `StoreFailure` where it cannot be read to its end: one with a damaged object is
   * unknown from then on.
   */
  readonly batches: Iterable<ListBatch>
}

/** The metadata of a list that was read to its end. */
export interface CollectionHead {
  readonly gvk: GVK
  readonly resourceVersion: string
  readonly extra: string
  /**
   * What was stored when a consistent list was requested. One that is older still is of an API
   * server whose versions began anew, and not of one that lags: it is taken.
   */
  readonly storedBefore?: string | undefined
}

/**
 * An atomic replace of a collection: staged in batches, then committed. Disposed of before, it
 * changes nothing.
 */
export interface Replacement extends AsyncDisposable {
  /**
   * Resolves when the store can take more. Objects that are stored byte for byte at their version
   * are not written.
   */
  add(batch: ListBatch): Promise<void>
  /**
   * Resolves when it is durable. A list that is older than what is stored only gives access to it.
   */
  commit(head: CollectionHead): Promise<void>
}

export interface ApplyOptions {
  /**
   * The version that the watch started from or has reached. A stored collection that is older, as
   * after a list of a restored cluster, does not take its events in, because some would be missing.
   */
  readonly since?: string | undefined
  /** False: the previous states are not needed, and not read. */
  readonly previous?: boolean
}

/**
 * Stores the answers to components. Reads are synchronous and see everything committed before;
 * writes resolve when they are committed, and reject with a `StoreFailure` when they are not:
 * nothing is half applied. What a write that failed should have changed is unknown from then on, a
 * collection until its next list. What removes (`forget`, `withdraw`, `drop`) does so in its turn,
 * also where it fails. A list in progress of what was removed is not committed.
 */
export interface ObjectStore extends AsyncDisposable {
  /**
   * The newest of the object's own record and its states in the collections of its partition,
   * unless something later contradicts it. 'absent': a collection that would hold it (no selector,
   * or its name) is stored without it, at a version newer than the one at which that newest state
   * was last confirmed, and to the last change of any selection. `undefined`: not known; or an API
   * server has answered that the object does not exist (`forget`), and no collection shows it.
   */
  get(key: ObjectKey): StoredObject | 'absent' | undefined
  /**
   * `undefined`: never listed, which is not the same as an empty list. `isRead`: of which objects
   * the list is; absent: of all.
   */
  list(key: CollectionKey, isRead?: (member: StoredMember) => boolean): StoredList | undefined
  /** The version of the list that `list` would return. Reads no object. */
  version(key: CollectionKey): string | undefined
  /**
   * The newest stored version of the resources that count, of any identity; `undefined`: none that
   * compares.
   */
  newestVersion(counts: (group: string, resource: string) => boolean): ResourceVersion | undefined
  /**
   * The collections of a partition and resource that `list` would return: those of `namespace` and
   * of all namespaces; for `undefined` only the latter.
   */
  collections(partition: Partition, gvr: GVR, namespace: string | undefined): StoredCollection[]
  /**
   * The content of the store for a resource in one API version: what `reader` may read, though it
   * has more names; absent: all.
   */
  partitions(gvr: GVR, reader?: Identity): readonly StoredPartition[]
  /** The key of the whole copy of which a caller's key shows what the caller may have. */
  copyOf<Key extends Pick<ObjectKey, 'partition' | 'gvr'>>(key: Key): Key
  /**
   * Whether the object is recorded byte for byte, recently, and the identity of the key may read
   * it: to put it would change nothing.
   */
  holds(key: ObjectKey, object: ApiObject): boolean
  /**
   * Records an object, which the identity of the key may read from now on. An older version than
   * the stored one changes nothing else.
   */
  put(key: ObjectKey, gvk: GVK, object: ApiObject): Promise<void>
  /**
   * An API server has answered that the object does not exist: removes its record, and `get`
   * ignores its states in collections until a put, an event or a changed list brings the object
   * again. Lists stay as the API server sent them at their version.
   */
  forget(key: ObjectKey): Promise<void>
  /**
   * Begins an atomic replace, by which the identity of the key may read the collection. An object
   * that the new list lacks loses its own record too, unless that is newer than the list. Under a
   * selector the object may only no longer match: to whom that collection was given it is unknown
   * then, not absent.
   */
  replace(key: CollectionKey): Replacement
  /**
   * Applies events in the order of the watch, in one commit. Resolves to the previous state of each
   * object in the collection: `undefined` for bookmarks and errors, for new objects, and where
   * `previous` is false. An event that is not newer than the collection changes nothing in it: its
   * previous state is `undefined` too.
   * Bookmarks advance the collection's version; errors change nothing. DELETED removes the object
   * from the collection, and its record. Under a selector the object may only no longer match: then
   * it is unknown to whom that collection was given, unless its record is of the event's own
   * version, and `get` ignores its earlier states in other collections.
   */
  apply(
    key: CollectionKey,
    events: readonly WatchEvent[],
    options?: ApplyOptions,
  ): Promise<readonly (ApiObject | undefined)[]>
  /**
   * An API server refuses the identities that begin with `holders` what they had: removes it, or
   * the grants of it, and ends lists in progress of theirs. Resolves when that is on the disk.
   */
  withdraw(holders: string, what: Withdrawal): Promise<void>
  /** Evicts all that is stored. */
  drop(): Promise<void>
}

/**
 * What an API server refuses, of a resource in any API version: the records of objects; or the
 * collections that a refused list or watch is a part of, those of its namespace and of all.
 */
export interface Withdrawal {
  readonly of: 'objects' | 'collections'
  readonly gvr: GVR
  /** '': all namespaces, or none. */
  readonly namespace: string
  /** Absent: all names, but for collections of a single name, which may be allowed apart. */
  readonly name?: string
}

/** The disk or the file refused a write, or could not be read. `cause` has the reason. */
export class StoreFailure extends Error {
  readonly code = 'STORE_FAILURE'
}
