import type { ApiObject } from '../../../api/kube/object.ts'
import type { Body } from './body.ts'
import type { ObjectMark } from './record.ts'
import { isObjectEvent, type WatchEvent } from '../../../api/codec/watch.ts'
import { compareVersions, isNewer, resourceVersion } from '../../../api/kube/resource-version.ts'
import { now } from '../../../base/clock.ts'

/** One stored version of an object. */
export interface Held {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: string
  readonly body: Body
}

export const heldOf = ([namespace, name, uid, version]: ObjectMark, body: Body): Held => ({
  namespace,
  name,
  uid,
  version,
  body,
})

export const markOf = ({ namespace, name, uid, resourceVersion }: ApiObject): ObjectMark => [
  namespace,
  name,
  uid,
  resourceVersion,
]

export const isSameVersion = (a: Held, b: Held): boolean =>
  a.version !== '' && a.version === b.version && a.uid === b.uid

/** Whether both have the same version and bytes. */
export const isSame = (a: Held, b: Held): boolean =>
  isSameVersion(a, b) && a.body.length === b.body.length && a.body.digest === b.body.digest

/**
 * Whether `next` is neither the stored state nor older. API servers of two releases may encode one
 * version of an object differently: what came last counts.
 */
export const isChange = (next: Held, stored: Held): boolean =>
  mayFollow(next.version, stored.version) && !isSame(next, stored)

/**
 * Whether a state at version `next` may replace one at `stored`: not if both are decimal and `next`
 * is older. Versions that do not compare, as aggregated API servers may issue them, leave the
 * decision to the later write.
 */
export function mayFollow(next: string, stored: string): boolean {
  const [a, b] = [resourceVersion(next), resourceVersion(stored)]
  return a === undefined || b === undefined || compareVersions(a, b) >= 0
}

/** Whether they are equal, or both compare and `version` is newer. */
export const isAtLeast = (version: string, other: string): boolean =>
  version === other || isNewer(version, other)

/**
 * Whether a collection at `at` has an event at `version` already; false for versions that do not
 * compare.
 */
export function isPast(version: string, at: string): boolean {
  const [a, b] = [resourceVersion(version), resourceVersion(at)]
  return a !== undefined && b !== undefined && compareVersions(a, b) <= 0
}

/**
 * The newer version, as a collection's; '' and '0', which no API server issues, do not advance it.
 */
export const newest = (stored: string, next: string): string =>
  next !== '' && next !== '0' && mayFollow(next, stored) ? next : stored

/** The newest version of the events; '' for none. */
export function newestVersionIn(events: readonly WatchEvent[]): string {
  let version = ''
  for (const event of events) {
    if (event.type === 'BOOKMARK') version = newest(version, event.resourceVersion)
    else if (isObjectEvent(event)) version = newest(version, event.object.resourceVersion)
  }
  return version
}

/** Unchanged objects are confirmed on the disk no more often: each time is a write. */
const confirmEveryMs = 600_000

/**
 * Whether a confirmation is recent enough not to be written again. After a clock was set back it is
 * written.
 */
export const isRecent = (confirmedAt: number): boolean =>
  Math.abs(now() - confirmedAt) < confirmEveryMs
