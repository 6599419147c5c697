import { lruCache } from '../../base/lru-cache.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import { isNewer, resourceVersion, type ResourceVersion } from '../../api/kube/resource-version.ts'
import type { Identity } from '../../api/request/identity.ts'
import type { ObjectStore } from '../store/store.ts'

/** Identities and resources remembered at a time; of the others the store knows what it has. */
const mostKnown = 4_096

/** Who is shown what. */
interface ObservedResource {
  readonly identity: Identity
  readonly gvr: GVR
}

/**
 * The newest resource version at which each identity was shown anything of a resource, by gets,
 * lists and watches alike: while a newer state of it can be had, it is not given an older one. What
 * is recorded was committed before it was noted, so that after a restart the store tells it.
 */
export class ObservedVersions {
  readonly #store: Pick<ObjectStore, 'observedVersion'>
  readonly #known = lruCache<string, ResourceVersion>(mostKnown)

  constructor(store: Pick<ObjectStore, 'observedVersion'>) {
    this.#store = store
  }

  of({ identity, gvr }: ObservedResource): ResourceVersion | undefined {
    const place = keyOf(identity, gvr)
    const known = this.#known.get(place) ?? this.#store.observedVersion(identity, gvr)
    if (known !== undefined) this.#known.set(place, known)
    return known
  }

  /** It is about to be shown something of this version; what is no version changes nothing. */
  note(of: ObservedResource, version: string): void {
    const shown = resourceVersion(version)
    if (shown === undefined) return
    const known = this.of(of)
    if (known === undefined || isNewer(shown, known)) {
      this.#known.set(keyOf(of.identity, of.gvr), shown)
    }
  }

  /**
   * The same for a consistent read, before which `of` was `before`. It cannot be older, unless the
   * cluster was restored from a backup: then that is what counts from now on.
   */
  noteConsistent(of: ObservedResource, version: string, before: ResourceVersion | undefined): void {
    const shown = resourceVersion(version)
    const isRestored = isNewer(before, shown) && this.of(of) === before
    if (isRestored && shown) this.#known.set(keyOf(of.identity, of.gvr), shown)
    else this.note(of, version)
  }
}

/** Whatever the API version, an object has one resource version. */
const keyOf = (identity: Identity, { group, resource }: GVR): string =>
  JSON.stringify([identity, group, resource])
