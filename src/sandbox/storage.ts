import { Broadcast } from '../base/broadcast.ts'
import { namespacedName } from '../api/kube/object.ts'
import type { Kind } from './kinds.ts'
import type { KubeObject } from './object.ts'

/**
 * One write. `object` is the state after it, or for DELETED the last state with the version of the
 * deletion.
 */
export interface StorageEvent {
  readonly version: number
  readonly kind: Kind
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: KubeObject
  readonly previous?: KubeObject
}

/** The storage as readers see it: whole, or lagging. */
export interface View {
  readonly version: number
  /** The version of a read that names none: etcd's, even where the server's cache lags. */
  readonly newest: number
  /** Changes up to this version are compacted: no older version can be read. */
  readonly compacted: number
  /**
   * Objects of a kind by key, as they were at `version`, which is neither forgotten nor in the
   * future.
   */
  at(kind: Kind, version: number): ReadonlyMap<string, KubeObject>
  /** Changes after a version that is not forgotten, oldest first. */
  changesAfter(version: number): readonly StorageEvent[]
  /** Calls `onChange` for every change that becomes visible in this view, until disposed. */
  follow(onChange: (change: StorageEvent) => void): Disposable
}

/** The versions of a resource are stored as one. */
export const storedAs = ({ gvr }: Kind): string => `${gvr.group}/${gvr.resource}`

/** Objects under one counter of versions, with as much history as the ring holds. */
export class Storage implements View {
  #version: number
  #compacted: number
  readonly #ring: StorageEvent[] = []
  readonly #ringSize: number
  readonly #objects = new Map<string, Map<string, KubeObject>>()
  readonly #recorded = new Broadcast<[StorageEvent]>()

  constructor(firstVersion: number, ringSize: number) {
    this.#version = firstVersion
    this.#compacted = firstVersion
    this.#ringSize = ringSize
  }

  get newest(): number {
    return this.#version
  }

  get version(): number {
    return this.#version
  }

  get compacted(): number {
    return this.#compacted
  }

  get(kind: Kind, namespace: string | undefined, name: string): KubeObject | undefined {
    return this.#of(kind).get(namespacedName({ namespace, name }))
  }

  /** The version the next write gets, for the object that is about to be written. */
  get nextVersion(): string {
    return String(this.#version + 1)
  }

  /** Stores an object that carries `nextVersion`. */
  put(kind: Kind, object: KubeObject): void {
    const objects = this.#of(kind)
    const key = namespacedName(object.metadata)
    const previous = objects.get(key)
    objects.set(key, object)
    this.#record({
      version: this.#version + 1,
      kind,
      type: previous ? 'MODIFIED' : 'ADDED',
      object,
      ...(previous && { previous }),
    })
  }

  /**
   * Removes an object, whose last state is `last`; the returned object has the version of the
   * deletion.
   */
  remove(kind: Kind, last: KubeObject): KubeObject {
    const metadata = { ...last.metadata, resourceVersion: this.nextVersion }
    const object = { ...last, metadata } as KubeObject
    const key = namespacedName(last.metadata)
    const previous = this.#of(kind).get(key) ?? last
    this.#of(kind).delete(key)
    this.#record({ version: this.#version + 1, kind, type: 'DELETED', object, previous })
    return object
  }

  /** Forgets all history, as etcd does every five minutes. */
  compact(): void {
    this.#ring.length = 0
    this.#compacted = this.#version
  }

  at(kind: Kind, version: number): ReadonlyMap<string, KubeObject> {
    const current = this.#of(kind)
    if (version >= this.#version) return current
    const objects = new Map(current)
    const stored = storedAs(kind)
    for (const change of this.changesAfter(version).toReversed()) {
      if (storedAs(change.kind) !== stored) continue
      const key = namespacedName(change.object.metadata)
      if (change.previous) objects.set(key, change.previous)
      else objects.delete(key)
    }
    return objects
  }

  changesAfter(version: number): readonly StorageEvent[] {
    let first = this.#ring.length
    while (first > 0 && (this.#ring[first - 1]?.version ?? 0) > version) first--
    return this.#ring.slice(first)
  }

  follow(onChange: (change: StorageEvent) => void): Disposable {
    return this.#recorded.listen(onChange)
  }

  #of(kind: Kind): Map<string, KubeObject> {
    const stored = storedAs(kind)
    const objects = this.#objects.get(stored) ?? new Map<string, KubeObject>()
    this.#objects.set(stored, objects)
    return objects
  }

  #record(change: StorageEvent): void {
    this.#version = change.version
    this.#ring.push(change)
    if (this.#ring.length > this.#ringSize) this.#compacted = this.#ring.shift()?.version ?? 0
    this.#recorded.announce(change)
  }
}

/** The view of a server that is always `versions` writes behind. */
export class LaggingView implements View {
  readonly #storage: Storage
  readonly #versions: number

  constructor(storage: Storage, versions: number) {
    this.#storage = storage
    this.#versions = versions
  }

  get newest(): number {
    return this.#storage.version
  }

  get version(): number {
    return Math.max(this.#storage.version - this.#versions, this.#storage.compacted)
  }

  get compacted(): number {
    return this.#storage.compacted
  }

  at(kind: Kind, version: number): ReadonlyMap<string, KubeObject> {
    return this.#storage.at(kind, version)
  }

  changesAfter(version: number): readonly StorageEvent[] {
    return this.#storage.changesAfter(version).filter((change) => change.version <= this.version)
  }

  follow(onChange: (change: StorageEvent) => void): Disposable {
    let seen = this.version
    return this.#storage.follow(() => {
      const changes = this.changesAfter(seen)
      seen = Math.max(seen, this.version)
      for (const change of changes) onChange(change)
    })
  }
}
