import { latest } from '../../../base/clock.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { isSelective } from '../../../api/kube/selectors.ts'
import { covers, nameKey } from './address.ts'
import { isSame, isSameVersion, newest, type Held } from './held.ts'
import { isGiven, type Scope } from './scope.ts'

/** One stored version of an object. */
export interface ObjectState {
  readonly held: Held
  readonly gvk: GVK
  /** The version up to which it is known not to have changed. */
  readonly confirmedVersion: string
  /** When that was confirmed. */
  readonly confirmedAt: number
}

/**
 * What is known of an object by its name: its newest state, unless something later contradicts it.
 * Of versions that do not compare, and of one version in different bytes, the one written last; of
 * one version in the same bytes, the one confirmed last. 'absent': a collection that would have the
 * object does not, at a newer version. Unless a selection has changed since, which the object may
 * have left.
 *
 * By what the holder may have, or by all: of an object that it was given, or that a collection
 * which it was given would have, any state; else only what selections that it was given hold.
 */
export function knownObject(
  scope: Scope,
  named: { readonly namespace: string; readonly name: string },
  holder?: string,
): ObjectState | 'absent' | undefined {
  const key = nameKey(named)
  const record = scope.records.get(key)
  const parts = [...(record ? [record] : []), ...scope.collections.values()]
  const isGivenAny = parts.some((each) => isGiven(each, holder) && covers(each.address, named))
  const states: ObjectState[] = []
  const denials: string[] = []
  /** The last change of any selection that the object may have been in. */
  let selectedAt = ''
  const isOutdated = scope.tombstones.has(key)
  for (const part of parts) {
    const { address, version, gvk, members, seenAt: confirmedAt } = part
    if (!isGivenAny && !isGiven(part, holder)) continue
    if (address.namespace !== '' && address.namespace !== named.namespace) continue
    if (isSelective(address)) selectedAt = newest(selectedAt, part.changedAt)
    const held = members.get(key)
    // Members have the kind that their list is named for; a Table stays one.
    const kind = gvk.kind.replace(/List$/, '')
    if (held && (!isOutdated || part === record))
      states.push({ held, gvk: { ...gvk, kind }, confirmedVersion: version, confirmedAt })
    else if (!held && covers(address, named)) denials.push(version)
  }
  const known = newestOf(states)
  const later = denials.filter((at) => !known || isNewer(at, known.confirmedVersion))
  const isAbsent = later.some((at) => !isNewer(selectedAt, at)) && (known || !isOutdated)
  return isAbsent ? 'absent' : later.length === 0 ? known : undefined
}

/** With what all say of the same state. */
function newestOf(states: readonly ObjectState[]): ObjectState | undefined {
  let found: ObjectState | undefined
  for (const each of states) if (!found || isBefore(each, found)) found = each
  if (!found) return undefined
  const { version, uid } = found.held
  const same = states.filter(({ held }) => held.version === version && held.uid === uid)
  return {
    ...found,
    confirmedAt: latest(...same.map(({ confirmedAt }) => confirmedAt)),
    confirmedVersion: same
      .map(({ confirmedVersion }) => confirmedVersion)
      .reduce((most, each) => (isNewer(each, most) ? each : most), found.confirmedVersion),
  }
}

function isBefore(candidate: ObjectState, other: ObjectState): boolean {
  const [a, b] = [candidate.held, other.held]
  if (isSame(a, b)) return isNewer(candidate.confirmedVersion, other.confirmedVersion)
  if (!isSameVersion(a, b) && isNewer(a.version, b.version)) return true
  return (isSameVersion(a, b) || !isNewer(b.version, a.version)) && a.body.serial > b.body.serial
}
