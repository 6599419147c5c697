import { latest } from '../../../base/clock.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { isSelective } from '../../../api/kube/selectors.ts'
import { covers, nameKey } from './address.ts'
import { isSame, isSameVersion, type Held } from './held.ts'
import type { Collection, Scope } from './scope.ts'
import { newest } from './versions.ts'

/** One stored version of the object. */
export interface ObjectState {
  readonly held: Held
  readonly gvk: GVK
  /** The version up to which it is known not to have changed. */
  readonly confirmedVersion: string
  /** When that was confirmed. */
  readonly confirmedAt: number
}

/** A complete collection with respect to one object: it has it, or it would and does not. */
interface Membership {
  readonly version: string
  readonly member: ObjectState | undefined
}

/** All stored versions of one object. */
export interface ObjectStates {
  readonly record: ObjectState | undefined
  readonly memberships: readonly Membership[]
  /** The last change of any selection that the object may have been in. */
  readonly selectedAt: string
}

/**
 * Those that the holder may have, or all: of an object that it was given, or that a collection
 * which it was given would have, any state; else only what selections that it was given hold.
 */
export function objectStates(
  scope: Scope,
  named: { readonly namespace: string; readonly name: string },
  holder?: string,
): ObjectStates {
  const key = nameKey(named)
  const isGiven = ({ holders }: Pick<Collection, 'holders'>): boolean =>
    holder === undefined || holders.has(holder)
  const own = scope.records.get(key)
  const isGivenAny =
    holder === undefined ||
    own?.holders.has(holder) ||
    scope.collections.values().some((each) => isGiven(each) && covers(each.address, named))
  const record = isGivenAny ? own : undefined
  const memberships: Membership[] = []
  let selectedAt = ''
  // Of an object with a tombstone only the record counts.
  const counted = scope.tombstones.has(key) ? [] : scope.collections.values()
  for (const collection of counted) {
    const { address, version, gvk, members, seenAt } = collection
    const held = members.get(key)
    if (!isGivenAny && !isGiven(collection)) continue
    if (address.namespace !== '' && address.namespace !== named.namespace) continue
    if (isSelective(address)) selectedAt = newest(selectedAt, collection.changedAt)
    if (!held && !covers(address, named)) continue
    // Members have the kind that their list is named for; a Table stays one.
    const kind = gvk.kind.replace(/List$/, '')
    const member = held && {
      held,
      gvk: { ...gvk, kind },
      confirmedVersion: version,
      confirmedAt: seenAt,
    }
    memberships.push({ version, member })
  }
  return {
    record: record && {
      held: record.held,
      gvk: record.gvk,
      confirmedVersion: record.held.version,
      confirmedAt: record.confirmedAt,
    },
    memberships,
    selectedAt,
  }
}

/** When, and up to which version, an API server last confirmed this state of the object. */
export function confirmationOf(
  { record, memberships }: ObjectStates,
  { held, confirmedVersion }: ObjectState,
): { readonly confirmedAt: number; readonly confirmedVersion: string } {
  const same: number[] = []
  let version = confirmedVersion
  for (const each of [record, ...memberships.map(({ member }) => member)]) {
    if (each?.held.version !== held.version || each.held.uid !== held.uid) continue
    same.push(each.confirmedAt)
    if (isNewer(each.confirmedVersion, version)) version = each.confirmedVersion
  }
  return { confirmedAt: latest(...same), confirmedVersion: version }
}

/**
 * The newest state. Of versions that do not compare, and of one version in different bytes, the one
 * written last; of one version in the same bytes, the one confirmed last.
 */
export function newestState({ record, memberships }: ObjectStates): ObjectState | undefined {
  let newest = record
  for (const { member } of memberships) if (member && isBefore(member, newest)) newest = member
  return newest
}

function isBefore(candidate: ObjectState, other: ObjectState | undefined): boolean {
  if (!other) return true
  const [a, b] = [candidate.held, other.held]
  if (isSame(a, b)) return isNewer(candidate.confirmedVersion, other.confirmedVersion)
  if (isSameVersion(a, b)) return a.body.serial > b.body.serial
  if (isNewer(a.version, b.version)) return true
  return !isNewer(b.version, a.version) && a.body.serial > b.body.serial
}

/**
 * The state to answer with: the newest one, unless something later contradicts it. 'absent': a
 * collection that would have the object does not, at a newer version. Unless a selection has
 * changed since, which the object may have left.
 */
export function currentState(states: ObjectStates): ObjectState | 'absent' | undefined {
  const known = newestState(states)
  const confirmed = known && confirmationOf(states, known).confirmedVersion
  const denials = states.memberships.filter(
    ({ member, version }) => !member && (confirmed === undefined || isNewer(version, confirmed)),
  )
  if (denials.length === 0) return known
  return denials.some(({ version }) => !isNewer(states.selectedAt, version)) ? 'absent' : undefined
}
