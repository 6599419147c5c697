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
  /** It was observed, and its absence was not observed since. */
  there: boolean
}

interface ObservedCollection {
  /** The newest version at which it was shown. */
  version: number
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

  constructor(history: History) {
    this.#history = history
  }

  /** The version that a collection must not fall behind; 0 where nothing of it was shown. */
  floor(collection: Collection): number {
    return this.collections.get(pathOf(collection))?.version ?? 0
  }

  wasShownWhole(collection: Collection): boolean {
    return this.collections.get(pathOf(collection))?.whole === true
  }

  /**
   * The newest version at which the collection, or an object that it could hold, was shown; 0 where
   * neither was.
   */
  seen(collection: Collection): number {
    const since = [...this.objects].flatMap(([place, known]) => {
      const [resource, namespace = '', name = ''] = place.split('/')
      const isCovered = resource === collection.resource && covers(collection, { namespace, name })
      return isCovered && known.there ? [known.since] : []
    })
    return Math.max(this.floor(collection), ...since)
  }

  /** A whole list, or the initial events of a watch, at this version. */
  showList(collection: Collection, version: number): void {
    this.reach(collection, version, true)
    this.#history.listed(collection, version)
    const objects = this.#history.objects(collection, version)
    for (const object of objects.values()) this.#show(collection.resource, object, version, true)
    for (const [place, known] of this.objects) {
      const [resource, namespace = '', name = ''] = place.split('/')
      if (resource !== collection.resource || !covers(collection, { namespace, name })) continue
      if (objects.has(`${namespace}/${name}`)) continue
      known.there = false
      // With selectors it may be there and not match.
      if (isWhole(collection)) {
        known.since = Math.max(known.since, version)
      }
    }
  }

  /** A change or a bookmark of a watch. */
  reach(collection: Collection, version: number, whole = false): void {
    const path = pathOf(collection)
    const told = this.collections.get(path) ?? { version: 0, whole: false }
    this.collections.set(path, {
      version: Math.max(told.version, version),
      whole: told.whole || whole,
    })
  }

  /** An event of a watch. */
  showChange(collection: Collection, type: string, object: ModelObject): void {
    this.reach(collection, object.version)
    this.#show(collection.resource, object, object.version, type !== 'DELETED')
  }

  #show(resource: Resource, object: ModelObject, version: number, there: boolean): void {
    // An older list of another collection does not bring back what an event has taken since.
    if (version >= this.sinceOf(resource, object)) this.#note(resource, object, version, there)
  }

  /** The version at or after which the next answer about this object must have been true. */
  sinceOf(resource: Resource, of: Pick<ModelObject, 'namespace' | 'name'>): number {
    return this.objects.get(`${resource}/${keyOf(of)}`)?.since ?? 0
  }

  isKnownThere(resource: Resource, of: Pick<ModelObject, 'namespace' | 'name'>): boolean {
    return this.objects.get(`${resource}/${keyOf(of)}`)?.there === true
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
  ): void {
    const since = Math.max(this.sinceOf(resource, of), version)
    this.objects.set(`${resource}/${keyOf(of)}`, { since, there })
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
