import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'

/** How a whole collection was asked for, as far as `isNews` depends on it. */
export interface RequestBaseline {
  /** The version of what was kept when the request went up. */
  readonly storedVersion: ResourceVersion | undefined
  /** The newest version at which the caller had been shown anything of the resource by then. */
  readonly lastObserved?: ResourceVersion | undefined
  /** The server was asked for nothing less than the most recent: no version was named. */
  readonly isConsistent: boolean
}

export const requestBaseline = (
  { query }: ResourceRequest,
  kept: string | undefined,
  lastObserved: ResourceVersion | undefined,
  isConsistent = (query.get('resourceVersion') ?? '') === '',
): RequestBaseline => ({ storedVersion: resourceVersion(kept), lastObserved, isConsistent })

/**
 * Whether a whole collection at `version` replaces the one in the store, which is at `kept` by now.
 * An older one may come from a lagging server, or may have come late: then it does not. But a
 * consistent read cannot be older than what was stored before it was asked, unless the cluster was
 * restored from a backup: then it replaces, if nothing restored has been stored meanwhile.
 */
export function replacesStored(
  version: string,
  asked: RequestBaseline,
  kept: string | undefined,
): boolean {
  const [given, known] = [resourceVersion(version), resourceVersion(kept)]
  if (given === undefined) return false
  if (known === undefined || compareVersions(given, known) >= 0) return true
  const { storedVersion: before, isConsistent } = asked
  if (!isConsistent || before === undefined) return false
  return compareVersions(given, before) < 0 && compareVersions(before, known) <= 0
}
