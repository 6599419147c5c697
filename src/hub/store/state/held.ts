import type { ApiObject } from '../../../api/kube/object.ts'
import { isObjectEvent, type WatchEvent } from '../../../api/codec/watch.ts'
import { compareVersions, isNewer, resourceVersion } from '../../../api/kube/resource-version.ts'
import { now } from '../../../base/clock.ts'
import type { StoredMember } from '../store.ts'

/** What a record says of a body in its own frame. */
export type BodyMark = readonly [length: number, digest: number, serial: number]

/** What a record says of a body that an earlier frame has brought: where it is, too. */
export type PlacedMark = readonly [...BodyMark, segment: number, offset: number]

/**
 * The bytes of an object or document, by their place. What neither the state nor a list in progress
 * refers to is garbage, and gone after a compaction, which moves the others.
 */
export class Body {
  /** The number of a file, and where they begin in it. */
  segment: number
  offset: number
  /** As stored: a sealed body is longer than what it seals. */
  readonly length: number
  /** Of the bytes before sealing: equal for equal bytes. */
  readonly digest: number
  /** Larger than of any body before it. */
  readonly serial: number

  constructor(segment: number, offset: number, [length, digest, serial]: BodyMark | PlacedMark) {
    this.segment = segment
    this.offset = offset
    this.length = length
    this.digest = digest
    this.serial = serial
  }

  get mark(): PlacedMark {
    return [this.length, this.digest, this.serial, this.segment, this.offset]
  }

  moveTo(segment: number, offset: number): void {
    this.segment = segment
    this.offset = offset
  }
}

/** The bodies of these marks: those without a place lie one after another. */
export function bodiesAt(
  segment: number,
  offset: number,
  marks: readonly (BodyMark | PlacedMark)[],
): Body[] {
  let at = offset
  return marks.map((mark) => {
    const [length, , , of = segment, begin = at] = mark
    at += length
    return new Body(of, begin, mark)
  })
}

/** One version of an object, without its bytes. */
export type ObjectMark = readonly [namespace: string, name: string, uid: string, version: string]

/** One stored version of an object. */
export interface Held extends StoredMember {
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

/*
 * The first version is   newer   the same   older   not comparable
 * mayFollow              true    true       false   true
 * isAtLeast              true    true       false   false
 * isPast                 false   true       true    false
 * isNewer                true    false      false   false
 */

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
