import {
  keyOf,
  pathOf,
  selects,
  shown,
  type Collection,
  type ModelObject,
  type Resource,
} from './collection.ts'

/** One write to the cloud. */
interface Write {
  readonly version: number
  readonly resource: Resource
  /** What there was before. */
  readonly before: ModelObject | undefined
  /** What there is from then on; `undefined` where it was deleted. */
  readonly after: ModelObject | undefined
}

/** The watch event of one write. */
export interface WatchChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: ModelObject
}

/** The history of the cloud, version by version. */
export class History {
  /** The version before the first write that the model knows. */
  readonly first: number
  /** No watch from an earlier version can be continued: the cloud has forgotten what followed. */
  compacted: number
  readonly #newest: () => number
  readonly #writes: Write[] = []
  readonly #present = new Map<string, ModelObject>()
  /** The versions at which a collection was listed whole, by its path. */
  readonly #lists = new Map<string, number[]>()
  /** The version from which on the hub may have listed it for a client that left, by its path. */
  readonly #leftFrom = new Map<string, number>()

  /** `lag`: how far behind the first write a server may be. */
  constructor(newest: () => number, lag: number) {
    this.#newest = newest
    this.first = newest() - lag
    this.compacted = newest()
  }

  /** Whether the object has left one of these collections between two versions. */
  hasLeft(
    collections: readonly Collection[],
    resource: Resource,
    of: Pick<ModelObject, 'namespace' | 'name'>,
    since: number,
    until: number,
  ): boolean {
    return this.#writes.some(
      ({ version, resource: written, before, after }) =>
        version > since &&
        version <= until &&
        written === resource &&
        before !== undefined &&
        keyOf(before) === keyOf(of) &&
        collections.some(
          (each) =>
            each.resource === resource &&
            selects(each, before) &&
            !(after !== undefined && selects(each, after)),
        ),
    )
  }

  /** The newest version that was issued. */
  get newest(): number {
    return this.#newest()
  }

  isIssued(version: number): boolean {
    return Number.isInteger(version) && version >= this.first && version <= this.newest
  }

  put(resource: Resource, object: ModelObject): void {
    this.#write({
      version: object.version,
      resource,
      before: this.now(resource, object),
      after: object,
    })
    this.#present.set(`${resource}/${keyOf(object)}`, object)
  }

  /** `last`: its last state with the version of its deletion. */
  remove(resource: Resource, last: ModelObject): void {
    this.#write({
      version: last.version,
      resource,
      before: this.now(resource, last),
      after: undefined,
    })
    this.#present.delete(`${resource}/${keyOf(last)}`)
  }

  #write(write: Write): void {
    this.#writes.push(write)
  }

  now(resource: Resource, of: Pick<ModelObject, 'namespace' | 'name'>): ModelObject | undefined {
    return this.#present.get(`${resource}/${keyOf(of)}`)
  }

  /** A client was shown the collection whole at this version; the hub may have committed it. */
  listed(collection: Collection, version: number): void {
    const path = pathOf(collection)
    const known = this.#lists.get(path)
    if (known) known.push(version)
    else this.#lists.set(path, [version])
  }

  /**
   * A client left before its watch had shown the initial events whole; the hub may have committed
   * them, at `version` or a later one.
   */
  left(collection: Collection, version: number): void {
    const path = pathOf(collection)
    this.#leftFrom.set(path, Math.min(version, this.#leftFrom.get(path) ?? version))
  }

  /**
   * The newest version up to `version` at which a list shows a watch that has reached `reached` to
   * be where it was; `reached` where none does. The hub may have committed a list that a client was
   * shown or has left, and where the cloud has forgotten what followed `reached` it lists at any
   * later version.
   */
  unchangedUntil(collection: Collection, reached: number, version: number): number {
    const hasForgotten = reached < this.compacted && version >= this.compacted
    const path = pathOf(collection)
    const lists = [...(this.#lists.get(path) ?? []), ...(hasForgotten ? [version] : [])]
    for (let at = this.#leftFrom.get(path) ?? Infinity; at <= version; at++) lists.push(at)
    const between = lists.filter((at) => at > reached && at <= version)
    if (between.length === 0) return reached
    const before = this.state(collection, reached).join()
    const isSame = (at: number): boolean => this.state(collection, at).join() === before
    return Math.max(reached, ...between.filter(isSame))
  }

  /** What a list at this version holds, in order. */
  state(collection: Collection, version: number): string[] {
    return [...this.objects(collection, version).values()].map(shown).toSorted()
  }

  objects(collection: Collection, version: number): Map<string, ModelObject> {
    const objects = new Map<string, ModelObject>()
    for (const { resource, before, after, version: at } of this.#writes) {
      if (resource !== collection.resource || at > version) continue
      if (before) objects.delete(keyOf(before))
      if (after && selects(collection, after)) objects.set(keyOf(after), after)
    }
    return objects
  }

  /**
   * The events of a watch from this version, up to now (apiserver pkg/storage/cacher: transitions
   * by old and new object).
   */
  after(collection: Collection, version: number): WatchChange[] {
    return this.#writes.flatMap((write) => {
      if (write.version <= version) return []
      const told = changeOf(collection, write)
      return told ? [told] : []
    })
  }

  /**
   * The states that an object has had from `since` on, with `undefined` among them where it did not
   * exist for a while.
   */
  statesSince(
    resource: Resource,
    of: Pick<ModelObject, 'namespace' | 'name'>,
    since: number,
  ): (ModelObject | undefined)[] {
    const states: (ModelObject | undefined)[] = [undefined]
    for (const { resource: other, before, after, version } of this.#writes) {
      if (other !== resource || keyOf((after ?? before) as ModelObject) !== keyOf(of)) continue
      if (version <= since) states.length = 0
      states.push(after)
    }
    return states
  }

  /**
   * The first version from `since` on at which an object did not exist; `undefined` where it did
   * all the while.
   */
  absentFrom(
    resource: Resource,
    of: Pick<ModelObject, 'namespace' | 'name'>,
    since: number,
  ): number | undefined {
    let absent: number | undefined = since
    for (const { resource: other, before, after, version } of this.#writes) {
      if (other !== resource || keyOf((after ?? before) as ModelObject) !== keyOf(of)) continue
      if (version > since && absent !== undefined) return absent
      absent = after ? undefined : Math.max(version, since)
    }
    return absent
  }
}

function changeOf(
  collection: Collection,
  { version, resource, before, after }: Write,
): WatchChange | undefined {
  if (resource !== collection.resource) return undefined
  const was = before !== undefined && selects(collection, before)
  const is = after !== undefined && selects(collection, after)
  if (is) return { type: was ? 'MODIFIED' : 'ADDED', object: after }
  return was ? { type: 'DELETED', object: { ...before, version } } : undefined
}
