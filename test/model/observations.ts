import {
  covers,
  isWhole,
  keyOf,
  pathOf,
  type Collection,
  type ModelObject,
  type Resource,
} from './collection.ts'
import { Finding } from './finding.ts'
import type { History } from './history.ts'

/** The last observation of an object. */
interface ObservedObject {
  /** Later answers about it must have been true at this version or later. */
  since: number
  /** The same of answers from what the hub has stored. */
  storedSince: number
  /** It was observed, and its absence was not observed since. */
  there: boolean
  /** The hub has stored its last observation. */
  stored: boolean
}

interface ObservedCollection {
  /** The newest version at which it was shown. */
  version: number
  /** The newest of those that the hub has stored. */
  stored: number
  /** It was shown whole. */
  whole: boolean
}

/**
 * What one identity observed in one representation: the hub must be able to repeat it, and must not
 * take it back.
 */
export class Observations {
  readonly #history: History
  readonly collections = new Map<string, ObservedCollection>()
  readonly objects = new Map<string, ObservedObject>()
  /** An API server has accepted its credentials. */
  accepted = false
  /** The hub's disk takes writes. */
  #isStoring = true
  /** It has failed before. */
  #hasFailed = false

  constructor(history: History) {
    this.#history = history
  }

  /**
   * The hub's disk fails: it may lack what is shown from now on, and what changes. In place of a
   * collection that misses a write, what is older may be shown: of an object its record or its
   * state in another collection, of a shared collection the reader's own.
   */
  storesNoMore(): void {
    this.#isStoring = false
    this.#hasFailed = true
    for (const [path, known] of this.collections) {
      known.whole = false
      if (/services|endpointslices/.test(path)) known.stored = 0
    }
    for (const known of this.objects.values()) {
      known.stored = false
      known.storedSince = 0
    }
  }

  /** Any of it may be unknown from now on; what was shown holds all the same. */
  mayBeUnknown(): void {
    for (const known of this.objects.values()) known.stored = false
  }

  storesAgain(): void {
    this.#isStoring = true
  }

  /** The version that a collection must not fall behind; 0 where nothing of it was shown. */
  floor(collection: Collection): number {
    return this.collections.get(pathOf(collection))?.version ?? 0
  }

  /**
   * The version that an answer from the store must not fall behind: it may lack what a failing disk
   * did not take.
   */
  storedFloor(collection: Collection): number {
    return this.collections.get(pathOf(collection))?.stored ?? 0
  }

  wasShownWhole(collection: Collection): boolean {
    return this.collections.get(pathOf(collection))?.whole === true
  }

  /** A whole list, or the initial events of a watch, at this version. */
  showList(collection: Collection, version: number, isKept = true): void {
    this.reach(collection, version, { isList: true, isKept })
    this.#history.listed(collection, version)
    const objects = this.#history.objects(collection, version)
    for (const object of objects.values())
      this.#show(collection.resource, object, version, true, isKept)
    for (const [place, known] of this.objects) {
      const [resource, namespace = '', name = ''] = place.split('/')
      if (resource !== collection.resource || !covers(collection, { namespace, name })) continue
      if (objects.has(`${namespace}/${name}`)) continue
      known.there = false
      // With selectors it may be there and not match.
      if (isWhole(collection)) {
        known.since = Math.max(known.since, version)
        if (this.#isStoring && isKept) known.storedSince = Math.max(known.storedSince, version)
      }
    }
  }

  /** A change or a bookmark of a watch. */
  reach(
    collection: Collection,
    version: number,
    { isList = false, isKept = true }: { isList?: boolean; isKept?: boolean } = {},
  ): void {
    const path = pathOf(collection)
    const known = this.collections.get(path) ?? { version: 0, stored: 0, whole: false }
    const isStoring = this.#isStoring && isKept
    const whole = known.whole || (isList && isStoring)
    const isStored = isStoring && (whole || !this.#hasFailed)
    this.collections.set(path, {
      version: Math.max(known.version, version),
      stored: isStored ? Math.max(known.stored, version) : known.stored,
      whole,
    })
  }

  /** An event of a watch. */
  showChange(collection: Collection, type: string, object: ModelObject, isKept: boolean): void {
    this.reach(collection, object.version, { isKept })
    // A collection that missed a write is not kept up to date before it is listed.
    const isStored = isKept && (!this.#hasFailed || this.wasShownWhole(collection))
    this.#show(collection.resource, object, object.version, type !== 'DELETED', isStored)
  }

  #show(
    resource: Resource,
    object: ModelObject,
    version: number,
    there: boolean,
    isStored = true,
  ): void {
    // An older list of another collection does not bring back what an event has taken since.
    if (version >= this.sinceOf(resource, object))
      this.#note(resource, object, version, there, isStored)
  }

  /** The version at or after which the next answer about this object must have been true. */
  sinceOf(resource: Resource, of: Pick<ModelObject, 'namespace' | 'name'>): number {
    return this.objects.get(`${resource}/${keyOf(of)}`)?.since ?? 0
  }

  /** The same for an answer from the store, which may lack what a failing disk did not take. */
  storedSinceOf(resource: Resource, of: Pick<ModelObject, 'namespace' | 'name'>): number {
    return this.objects.get(`${resource}/${keyOf(of)}`)?.storedSince ?? 0
  }

  isKnownThere(resource: Resource, of: Pick<ModelObject, 'namespace' | 'name'>): boolean {
    const known = this.objects.get(`${resource}/${keyOf(of)}`)
    return known?.there === true && known.stored
  }

  /** The answer to a get. */
  showObject(resource: Resource, object: ModelObject): void {
    this.#note(resource, object, object.version, true)
  }

  /** A get was answered 404, which was true at this version at the earliest. */
  showAbsence(
    resource: Resource,
    of: Pick<ModelObject, 'namespace' | 'name'>,
    version: number,
  ): void {
    this.#note(resource, of, version, false)
  }

  #note(
    resource: Resource,
    of: Pick<ModelObject, 'namespace' | 'name'>,
    version: number,
    there: boolean,
    isStored = true,
  ): void {
    const since = Math.max(this.sinceOf(resource, of), version)
    const stored = isStored && this.#isStoring
    const storedBefore = this.storedSinceOf(resource, of)
    const storedSince = stored ? Math.max(storedBefore, version) : storedBefore
    this.objects.set(`${resource}/${keyOf(of)}`, { since, storedSince, there, stored })
  }
}

/** Throws a `Finding` unless this state (`undefined`: absence) was true at `since` or later. */
export function checkState(
  history: History,
  resource: Resource,
  of: Pick<ModelObject, 'namespace' | 'name'>,
  shownState: string | undefined,
  since: number,
  read: (object: ModelObject) => string,
): void {
  const states = history.statesSince(resource, of, since)
  const texts = states.map((state) => (state === undefined ? undefined : read(state)))
  if (texts.includes(shownState)) return
  throw new Finding(
    `${resource} ${keyOf(of)} shown as ${shownState ?? 'absent'}; since ${since} it was ${texts.map((text) => text ?? 'absent').join(', then ')}`,
  )
}
