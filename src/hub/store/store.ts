import type { ObjectEvent, WatchEvent } from '../../api/codec/watch.ts'
import type { ListBatch } from '../../api/codec/list.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { ResourceVersion } from '../../api/kube/resource-version.ts'
import type { RepresentationKey } from '../../api/request/representation.ts'
import type { Identity } from '../../api/request/identity.ts'

/**
 * Who asked, and in which form: an answer is never given to another identity nor turned into
 * another form.
 */
export interface Partition {
  readonly identity: Identity
  readonly representation: RepresentationKey
  /**
   * A person at a console asks: what was recorded for nobody else is the first to go where room is
   * needed. No part of the key.
   */
  readonly interactive?: boolean
}

export interface ObjectKey {
  readonly partition: Partition
  readonly gvr: GVR
  /** Empty for what is cluster-scoped. */
  readonly namespace: string
  readonly name: string
}

/**
 * What one list or watch covers. The component decides whether to record and which filters act, not
 * the key.
 */
export interface CollectionKey {
  readonly partition: Partition
  readonly gvr: GVR
  /** Absent: all namespaces, or a cluster-scoped resource. */
  readonly namespace?: string
  /** In canonical spelling (see `canonicalSelector`); '' selects everything. */
  readonly labelSelector: string
  readonly fieldSelector: string
}

/** A collection that could be answered from, without its objects. */
export interface StoredCollection {
  readonly key: CollectionKey
  readonly resourceVersion: string
}

/** A document that is no API object: discovery, OpenAPI, version. */
export interface DocumentKey {
  readonly identity: Identity
  /** A path, without a query. */
  readonly url: string
  /** The representation, as `documentTypesOf` spells it. */
  readonly accept: string
}

export interface DocumentContent {
  readonly contentType: string
  readonly body: Uint8Array
}

/** A document as it was put. */
export interface StoredDocument extends DocumentContent {
  /**
   * When the cloud last gave it, to some minutes, in milliseconds since the epoch; 0 where that is
   * not known.
   */
  readonly confirmedAt: number
}

/** An object, and of what kind it is. */
export interface ObjectOfKind {
  readonly gvk: GVK
  readonly object: ApiObject
}

export interface StoredObject extends ObjectOfKind {
  /**
   * The version up to which it is known not to have changed: its own, or that of a collection that
   * holds it.
   */
  readonly confirmedVersion: string
  /**
   * When the cloud last confirmed it, to some minutes: as a record, or in a collection that holds
   * it. As `KnownDocument` has it.
   */
  readonly confirmedAt: number
}

/** To be read to its end, or disposed of: until then what it holds is kept on the disk for it. */
export interface StoredList extends Disposable {
  /** Kind of the list (`PodList`) as it was given. */
  readonly gvk: GVK
  /** The newest of the list's own version and those of later events and bookmarks. */
  readonly resourceVersion: string
  readonly extra: string
  /**
   * When the cloud last confirmed it (list, event or bookmark), in milliseconds since the epoch.
   */
  readonly confirmedAt: number
  /**
   * In the order of namespace and name, read in runs, so that a long list holds nobody up. Iterated
   * once; as the collection was when it was asked for, whatever is written meanwhile. Throws a
   * `StoreFailure` where it cannot be read to its end. Without objects that are damaged.
   */
  readonly batches: Iterable<readonly ApiObject[]>
  /**
   * Whether nothing that belongs to it is damaged, as far as is known: what is read may show more.
   */
  readonly isWhole: () => boolean
}

/** What happened to a stored collection after a version. */
export interface StoredChanges {
  /** As `StoredList`. */
  readonly gvk: GVK
  readonly extra: string
  /**
   * Up to where they go: what the list is at. Where it was asked for what comes after a newer one,
   * there is nothing.
   */
  readonly resourceVersion: string
  /**
   * Oldest first, each with what the collection held before, where that is known; DELETED with the
   * last state, at the version of the deletion. Read in runs and iterated once, as the events were
   * when they were asked for. Throws a `StoreFailure` where they cannot be read to their end:
   * whoever was told of those before has to list.
   */
  readonly batches: Iterable<readonly ObjectEvent[]>
}

/** What a list says of itself once it is whole. */
export interface CollectionHead {
  readonly gvk: GVK
  readonly resourceVersion: string
  readonly extra: string
}

/**
 * A collection being replaced: staged in batches, then committed whole; disposed before, nothing
 * has changed.
 */
export interface Replacement extends AsyncDisposable {
  /**
   * Resolves when the store can take more; what is unchanged by resource version costs no write.
   */
  add(batch: ListBatch): Promise<void>
  /** What was added under this name is gone again before the list is whole; may be added anew. */
  remove(of: { readonly namespace: string; readonly name: string }): void
  /** Resolves when it is durable. */
  commit(head: CollectionHead): Promise<void>
}

export interface ApplyOptions {
  /**
   * The version at which the watch takes the collection to be: one that is older, as a list of a
   * restored cluster makes it, does not follow such a watch, which would leave a hole in it.
   */
  readonly since?: string | undefined
  /** False: nobody asks what was held before, which then is not read. */
  readonly previous?: boolean
}

/**
 * Keeps what components were told. Reads are synchronous and see all that was committed before;
 * writes resolve when they are committed, and reject with a `StoreFailure` when they are not:
 * nothing is half applied. A collection whose write failed is unfit: `list` and what relies on it
 * answer `undefined` until its next commit.
 */
export interface ObjectStore extends AsyncDisposable {
  /**
   * The newest of the object's own record and what the collections of its partition hold of it,
   * unless something later contradicts it. 'absent': a collection that would have it (no selector,
   * or its name) is stored and has it not, at a version newer than the one at which that newest was
   * last confirmed: its own for a record, the collection's for a member. `undefined`: nothing is
   * known, or the cloud said that there is no such object (`forget`) and no such collection tells.
   */
  get(key: ObjectKey): StoredObject | 'absent' | undefined
  /** `undefined`: never listed, which is not the same as listed and empty. */
  list(key: CollectionKey): StoredList | undefined
  /**
   * When the cloud last confirmed what `list` would answer, as `StoredList` has it; `undefined`: as
   * `list`. Keeps nothing for a reader.
   */
  confirmedAt(key: CollectionKey): number | undefined
  /**
   * The events of a stored collection after version `since`. 'expired': not all of them are known
   * (any more). `undefined`: as `list`. How many are kept is the store's to say; they outlast it.
   */
  changes(key: CollectionKey, since: string): StoredChanges | 'expired' | undefined
  /** What the list is at, with what is accepted and still being written. Reads no object. */
  version(key: CollectionKey): string | undefined
  /**
   * What `list` is at now: an answer made of it is no newer than this, while `version` may be.
   * Reads no object.
   */
  committedVersion(key: CollectionKey): string | undefined
  /**
   * The newest version that is stored of a resource for an identity, in whichever form and API
   * version: of objects that have a record of their own, and of collections. `undefined`: none that
   * compares.
   */
  observedVersion(identity: Identity, gvr: GVR): ResourceVersion | undefined
  /**
   * Whether the cloud has said since of an object that the collection holds that there is none
   * (`forget`).
   */
  isContradicted(key: CollectionKey): boolean
  /**
   * The collections of a partition and resource that `list` would answer and that lack nothing:
   * those that have to do with `namespace`, its own and those of all namespaces; with `undefined`
   * only these.
   */
  collections(partition: Partition, gvr: GVR, namespace: string | undefined): StoredCollection[]
  /**
   * Namespaces and names of the objects of a partition and resource that have a record of their own
   * (`put`), in no order.
   */
  names(
    partition: Partition,
    gvr: GVR,
  ): readonly { readonly namespace: string; readonly name: string }[]
  /** An older version than what is stored changes nothing. */
  put(key: ObjectKey, gvk: GVK, object: ApiObject): Promise<void>
  /**
   * The cluster was restored from a backup: this is the object's state, whatever is stored. What
   * collections say of it is no longer answered by `get`, until one of them is listed anew or an
   * event tells of it. Lists stay what the cloud gave at their version.
   */
  putRestored(key: ObjectKey, gvk: GVK, object: ApiObject): Promise<void>
  /**
   * The cloud said that there is no such object: its own record goes, and what collections hold of
   * it is no longer answered by `get`, until a put, an event or a changed list brings the object
   * again. Lists stay what the cloud gave at their version.
   */
  forget(key: ObjectKey): Promise<void>
  /**
   * Begins a list. What it drops loses its own record too, if that is not newer than the list: with
   * selectors it may only no longer match, so that it is unknown then and not absent.
   */
  replace(key: CollectionKey): Replacement
  /**
   * In the order the watch gave them, one commit; resolves to what the collection held of each
   * object before (`undefined` for bookmarks and errors, where nothing was held, and where nobody
   * asks). What is not newer than the collection was before the first of them was told by a faster
   * watch, and changes nothing in it. Bookmarks advance the collection's version; errors change
   * nothing. DELETED removes the object from the collection and its own record. Under a selector it
   * may only no longer match: then it is unknown, and what other collections hold of it from before
   * is no longer answered by `get`.
   */
  apply(
    key: CollectionKey,
    events: readonly WatchEvent[],
    options?: ApplyOptions,
  ): Promise<readonly (ApiObject | undefined)[]>
  putDocument(key: DocumentKey, document: DocumentContent): Promise<void>
  document(key: DocumentKey): StoredDocument | undefined
  /**
   * Which documents are kept for an identity, at most `most` of them, with `confirmedAt` as
   * `KnownDocument` has it. Reads no document.
   */
  documents(
    identity: Identity,
    most: number,
  ): readonly (DocumentKey & Pick<StoredDocument, 'confirmedAt'>)[]
}

/** The disk, or the file, would not take a write. `cause` says why. */
export class StoreFailure extends Error {
  readonly code = 'STORE_FAILURE'
}
