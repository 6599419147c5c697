import { compareVersions, isNewer, resourceVersion } from '../../../api/kube/resource-version.ts'

/**
 * Whether what has version `next` may take the place of what has version `stored`: not if both are
 * decimal and it is older. Versions that do not compare (aggregated servers may issue what they
 * like) leave the word to the later write.
 */
export function mayFollow(next: string, stored: string): boolean {
  const [a, b] = [resourceVersion(next), resourceVersion(stored)]
  return a === undefined || b === undefined || compareVersions(a, b) >= 0
}

/** Whether they are the same, or both compare and `version` is the newer. */
export const isAtLeast = (version: string, other: string): boolean =>
  version === other || isNewer(version, other)

/**
 * Whether a collection at `at` knows already what happened at `version`; of versions that do not
 * compare it never does.
 */
export function isPast(version: string, at: string): boolean {
  const [a, b] = [resourceVersion(version), resourceVersion(at)]
  return a !== undefined && b !== undefined && compareVersions(a, b) <= 0
}

/**
 * The newer of the two for a collection to be at; what no server issues ('' and '0') moves nothing.
 */
export const newest = (stored: string, next: string): string =>
  next !== '' && next !== '0' && mayFollow(next, stored) ? next : stored

/**
 * The least version after this one, to compare with and never to be shown; '' for what does not
 * compare.
 */
export const nextVersion = (version: string): string =>
  resourceVersion(version) === undefined ? '' : String(BigInt(version) + 1n)
