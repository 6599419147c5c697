import { lruCache } from '../../base/lru-cache.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import { isNewer, resourceVersion, type ResourceVersion } from '../../api/kube/resource-version.ts'
import type { Identity } from '../../api/request/identity.ts'
import type { ObjectStore } from '../store/store.ts'

/** How many identities and resources are held in memory; for the rest the store is read. */
const mostKnown = 4_096

interface ObservedResource {
  readonly identity: Identity
  readonly gvr: GVR
}

/**
 * The last observed resource version of each identity and resource, by gets, lists and watches
 * alike: while a newer state is available, the hub answers with none that is older. A recorded
 * answer is committed before it is noted, so that the store has the version after a restart.
 */
export class ObservedVersions {
  readonly #store: Pick<ObjectStore, 'observedVersion'>
  readonly #versions = lruCache<string, ResourceVersion>(mostKnown)

  constructor(store: Pick<ObjectStore, 'observedVersion'>) {
    this.#store = store
  }

  of({ identity, gvr }: ObservedResource): ResourceVersion | undefined {
    const key = keyOf(identity, gvr)
    const known = this.#versions.get(key)
    if (known !== undefined) return known
    const stored = this.#store.observedVersion(identity, gvr)
    if (stored !== undefined) this.#versions.set(key, stored)
    return stored
  }

  /**
   * To be called before an answer of this version is passed on; a string that is no version is
   * ignored.
   */
  note(of: ObservedResource, version: string): void {
    const shown = resourceVersion(version)
    if (shown === undefined) return
    const observed = this.of(of)
    if (observed === undefined || isNewer(shown, observed)) {
      this.#versions.set(keyOf(of.identity, of.gvr), shown)
    }
  }

  /**
   * The same for a consistent read, before which the version was `before`. It cannot be older,
   * unless the cluster was restored from a backup: then its version replaces the last observed one.
   */
  noteConsistent(of: ObservedResource, version: string, before: ResourceVersion | undefined): void {
    const shown = resourceVersion(version)
    const isRestored = isNewer(before, shown) && this.of(of) === before
    if (isRestored && shown) this.#versions.set(keyOf(of.identity, of.gvr), shown)
    else this.note(of, version)
  }
}

/**
 * An object has one resource version in all API versions. No group or resource contains a blank.
 */
const keyOf = (identity: Identity, { group, resource }: GVR): string =>
  `${group} ${resource} ${identity}`
