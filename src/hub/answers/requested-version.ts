import { compareVersions, resourceVersion } from '../../api/kube/resource-version.ts'
import {
  expired,
  StatusError,
  tooLargeResourceVersion,
  type Status,
} from '../../api/kube/status.ts'
import { versionNumber, isExactList, type ListOptions } from '../../api/request/list-options.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'

// What is asked of versions, held against the version at which something is stored.

/**
 * Throws a StatusError for what is no version, where those of the resource are: aggregated API
 * servers may write theirs as they like.
 */
export function refuseInvalidVersion(
  asked: string,
  stored: string,
  verb: 'get' | 'list' | 'watch',
): void {
  if (resourceVersion(stored) !== undefined) versionNumber(asked, verb)
}

/** Why a version is refused that is newer than what is stored. */
export function refusalOfNewer(version: string, stored: string): Status | undefined {
  const [asked, kept] = [resourceVersion(version), resourceVersion(stored)]
  if (asked === undefined || kept === undefined) return undefined
  return compareVersions(asked, kept) > 0 ? tooLargeResourceVersion(asked, kept) : undefined
}

/**
 * Throws a StatusError for a get that names no version, or one that is newer than that up to which
 * its object is `known`.
 */
export function refuseNewerGet({ query }: ResourceRequest, known: string): void {
  const asked = query.get('resourceVersion') ?? ''
  refuseInvalidVersion(asked, known, 'get')
  const newer = refusalOfNewer(asked, known)
  if (newer) throw new StatusError(newer)
}

/**
 * Throws what a list of the version that is stored is answered with where another one is asked for:
 * 504 for a newer one, 410 for exactly an older one or a further page.
 */
export function refuseOtherListVersion(options: ListOptions, stored: string): void {
  if (options.continue !== '')
    throw new StatusError(expired('The provided continue parameter is too old'))
  const newer = refusalOfNewer(options.resourceVersion, stored)
  if (newer) throw new StatusError(newer)
  const [asked, known] = [resourceVersion(options.resourceVersion), resourceVersion(stored)]
  if (asked !== undefined && known !== undefined && asked !== known && isExactList(options)) {
    throw new StatusError(expired('The resourceVersion for the provided list is too old.'))
  }
}
