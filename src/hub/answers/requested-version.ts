import { compareVersions, resourceVersion } from '../../api/kube/resource-version.ts'
import {
  expired,
  StatusError,
  tooLargeResourceVersion,
  type Status,
} from '../../api/kube/status.ts'
import { versionNumber, isExactList, type ListOptions } from '../../api/request/list-options.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'

/**
 * Throws a StatusError where the requested version is malformed. Aggregated API servers may issue
 * versions of their own syntax: if the stored one is not decimal, the hub checks nothing.
 */
export function refuseInvalidVersion(
  requested: string,
  stored: string,
  verb: 'get' | 'list' | 'watch',
): void {
  if (resourceVersion(stored) !== undefined) versionNumber(requested, verb)
}

/** The Status that refuses a version newer than the stored one; `undefined`: it is not newer. */
export function refusalOfNewer(version: string, stored: string): Status | undefined {
  const [requested, known] = [resourceVersion(version), resourceVersion(stored)]
  if (requested === undefined || known === undefined) return undefined
  return compareVersions(requested, known) > 0
    ? tooLargeResourceVersion(requested, known)
    : undefined
}

/**
 * Throws a StatusError for a get whose version is malformed or newer than `known`, the version up
 * to which the object is known not to have changed.
 */
export function refuseNewerGet({ query }: ResourceRequest, known: string): void {
  const requested = query.get('resourceVersion') ?? ''
  refuseInvalidVersion(requested, known, 'get')
  const newer = refusalOfNewer(requested, known)
  if (newer) throw new StatusError(newer)
}

/**
 * Throws a StatusError where a list at the stored version does not satisfy the request: 504 for a
 * newer version, 410 for exactly an older one and for a further page.
 */
export function refuseOtherListVersion(options: ListOptions, stored: string): void {
  if (options.continue !== '')
    throw new StatusError(expired('The provided continue parameter is too old'))
  const newer = refusalOfNewer(options.resourceVersion, stored)
  if (newer) throw new StatusError(newer)
  const [requested, known] = [resourceVersion(options.resourceVersion), resourceVersion(stored)]
  if (requested === undefined || known === undefined || requested === known) return
  if (isExactList(options)) {
    throw new StatusError(expired('The resourceVersion for the provided list is too old.'))
  }
}
