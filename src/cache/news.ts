import { compareVersions, resourceVersion, type ResourceVersion } from '../kube/resource-version.ts'
import type { ResourceRequest } from '../request/request-info.ts'

/** What a whole collection was asked for with, as far as telling whether it is news. */
export interface Asked {
  /** The version of what was kept when the request went up. */
  readonly kept: ResourceVersion | undefined
  /** The server was asked for nothing less than the most recent: no version was named. */
  readonly mostRecent: boolean
}

export const askedFor = (
  { query }: ResourceRequest,
  kept: string | undefined,
  mostRecent = (query.get('resourceVersion') ?? '') === '',
): Asked => ({ kept: resourceVersion(kept), mostRecent })

/**
 * Whether a whole collection at `version` takes the place of the one that is kept, at `kept` by now. An older one may come from a server
 * that lags, or only late: what is kept then stands. But the most recent of a cluster cannot be older than what that cluster had told
 * before it was asked: then it was restored, and this counts, if nothing restored has come in meanwhile.
 */
export function isNews(version: string, asked: Asked, kept: string | undefined): boolean {
  const [given, known] = [resourceVersion(version), resourceVersion(kept)]
  if (given === undefined) return false
  if (known === undefined || compareVersions(given, known) >= 0) return true
  const { kept: before, mostRecent } = asked
  if (!mostRecent || before === undefined) return false
  return compareVersions(given, before) < 0 && compareVersions(before, known) <= 0
}
