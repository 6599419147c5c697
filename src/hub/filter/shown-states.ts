import { lruCache } from '../../base/lru-cache.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import {
  compareVersions,
  isNewer,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import type { Identity } from '../../api/request/identity.ts'
import { decideAlike, type ChainState } from './chain-state.ts'

/**
 * A collection as one component reads it with one identity, in whatever encoding.
 */
export interface ClientCollection {
  readonly identity: Identity
  readonly component: string
  readonly gvr: GVR
  readonly namespace: string | undefined
  readonly labelSelector: string
  readonly fieldSelector: string
}

/** More than the components of a node have collections. */
export const mostCollections = 2_048

/** The reason to list again after a change of filters or of their inputs. */
export const filtersChanged = 'the filters of this collection have changed'

/** The reason to list again where the hub knows of nothing that this client was shown. */
export const shownUnknown = 'the hub does not know what this client was shown'

/** The state of the chain under which a collection was shown last. */
interface Shown {
  readonly state: ChainState
  /** The oldest version of a client that has all of it under this state; '': of any version. */
  readonly from: string
  /** A client that never lists here is sent to list only once. */
  readonly isListed: boolean
}

/**
 * Remembers under which state of its filter chain each collection was shown to its clients last,
 * and from which version on: whether a client that resumes from a version may go on, or has to
 * list. Lasts as long as the process: after a restart each client of a filter that acts lists once.
 * Two clients with the same key cannot be distinguished: once the first one was shown a new state,
 * the second counts as up to date, too, if it is as far.
 */
export class ShownStates {
  readonly #shown = lruCache<string, Shown>(mostCollections)

  has(collection: ClientCollection): boolean {
    return this.#shown.has(keyOf(collection))
  }

  /**
   * Why a client that resumes from `version` has to list before it is shown events under `now`;
   * `undefined`: it may go on.
   */
  faultAt(
    collection: ClientCollection,
    now: ChainState,
    version: ResourceVersion,
  ): string | undefined {
    const shown = this.#shown.get(keyOf(collection))
    if (!shown) return now.acts ? shownUnknown : undefined
    if (!decideAlike(shown.state, now)) return filtersChanged
    const begun = resourceVersion(shown.from)
    if (!now.acts || !begun) return undefined
    return compareVersions(version, begun) >= 0 ? undefined : shownUnknown
  }

  /** A client has listed the collection at `version`, under `state`. */
  listed(collection: ClientCollection, state: ChainState, version: string): void {
    const key = keyOf(collection)
    const shown = this.#shown.get(key)
    const isKnown = shown !== undefined && decideAlike(shown.state, state)
    // Of a restored cluster, or by an API server that lags behind.
    const isFirst = !isKnown || isNewer(shown.from, version) || shown.from === version
    if (isFirst) this.#shown.set(key, { state, from: version, isListed: true })
    else if (!shown.isListed) this.#shown.set(key, { ...shown, state, isListed: true })
  }

  /** A client has listed the collection where no filter acts. */
  forget(collection: ClientCollection): void {
    this.#shown.delete(keyOf(collection))
  }

  /** A client has to list, and is shown `state` then, even if it does not list here. */
  expired(collection: ClientCollection, state: ChainState): void {
    const key = keyOf(collection)
    if (this.#shown.get(key)?.isListed) return
    this.#shown.set(key, { state, from: '', isListed: false })
  }
}

const keyOf = ({ identity, component, gvr, ...within }: ClientCollection): string =>
  JSON.stringify([
    identity,
    component,
    gvr.group,
    gvr.version,
    gvr.resource,
    within.namespace ?? null,
    within.labelSelector,
    within.fieldSelector,
  ])
