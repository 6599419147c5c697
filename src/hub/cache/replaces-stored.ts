import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'

/** The known versions when a collection was requested. */
export interface RequestBaseline {
  /** The version of the stored collection at the time of the request. */
  readonly storedVersion: ResourceVersion | undefined
  /** The request named no version: a consistent read. */
  readonly isConsistent: boolean
}

/**
 * Whether a whole collection at `version` replaces the stored one, which is at `kept` by now. An
 * older one may come from a lagging server, or late, and does not. But a consistent read cannot be
 * older than the collection stored before its request, unless the cluster was restored from a
 * backup: then it replaces, if the restored state has not been stored meanwhile.
 */
export function replacesStored(
  version: string,
  baseline: RequestBaseline,
  kept: string | undefined,
): boolean {
  const [given, known] = [resourceVersion(version), resourceVersion(kept)]
  if (given === undefined) return false
  if (known === undefined || compareVersions(given, known) >= 0) return true
  const { storedVersion: before, isConsistent } = baseline
  if (!isConsistent || before === undefined) return false
  return compareVersions(given, before) < 0 && compareVersions(before, known) <= 0
}
