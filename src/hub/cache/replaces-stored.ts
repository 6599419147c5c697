import {
  compareVersions,
  isNewer,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import { widerCollections } from '../answers/covering-collection.ts'
import type { CollectionKey, ObjectStore } from '../store/store.ts'

/** The known versions when a collection was requested. */
export interface RequestBaseline {
  /** The version of the stored collection at the time of the request. */
  readonly storedVersion: ResourceVersion | undefined
  /** The last observed version of the caller at that time. */
  readonly lastObserved?: ResourceVersion | undefined
  /** The request named no version: a consistent read. */
  readonly isConsistent: boolean
}

/**
 * Whether a whole collection at `version` replaces the stored one. An older one may come from a
 * lagging server, or late, and does not. But a consistent read cannot be older than the collection
 * stored before its request, unless the cluster was restored from a backup: then it replaces, if
 * the restored state has not been stored meanwhile. Where none is stored, the collection is
 * answered from a wider one, which an older one must not replace either.
 */
export function replacesStored(
  version: string,
  baseline: RequestBaseline,
  key: CollectionKey,
  store: ObjectStore,
): boolean {
  const [given, known] = [resourceVersion(version), resourceVersion(store.version(key))]
  if (given === undefined) return false
  const { storedVersion: before, isConsistent } = baseline
  if (known === undefined) {
    const wider = isConsistent ? [] : widerCollections(key, store)
    return !wider.some(({ resourceVersion }) => isNewer(resourceVersion, given))
  }
  if (compareVersions(given, known) >= 0) return true
  if (!isConsistent || before === undefined) return false
  return compareVersions(given, before) < 0 && compareVersions(before, known) <= 0
}
