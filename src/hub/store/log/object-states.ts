import { latest } from '../../../base/clock.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { isSelective } from '../../../api/kube/selectors.ts'
import { covers, isIn, nameKey } from './address.ts'
import { isSame, isSameVersion, newest, type Held } from './held.ts'
import { isGiven, type Collection, type Scope } from './scope.ts'

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
  const isGivenAny = parts.some((each) => isGiven(each, holder) && covers(each.key, named))
  const isOutdated = scope.tombstones.has(key)
  let known: Holding | undefined
  let deniedAt: string | undefined
  /** The last change of any selection that the object may have been in. */
  let selectedAt = ''
  for (const part of parts) {
    if (!isIn(part.key, named.namespace) || !(isGivenAny || isGiven(part, holder))) continue
    if (isSelective(part.key)) selectedAt = newest(selectedAt, part.changedAt)
    const held = part.members.get(key)
    if (!held && covers(part.key, named)) deniedAt = newest(deniedAt ?? part.version, part.version)
    if (!held || (isOutdated && part !== record)) continue
    if (!known || isBefore({ held, part }, known)) known = { held, part }
  }
  if (deniedAt !== undefined && (!known || isNewer(deniedAt, known.part.version)))
    return isNewer(selectedAt, deniedAt) || (!known && isOutdated) ? undefined : 'absent'
  if (!known) return undefined
  const { held, part } = known
  const { gvk, version: confirmedVersion, seenAt } = part
  // A get of the same state may have come later.
  const isRecorded = record?.held && isSameVersion(record.held, held)
  return {
    held,
    // Members have the kind that their list is named for; a Table stays one.
    gvk: { ...gvk, kind: gvk.kind.replace(/List$/, '') },
    confirmedVersion,
    confirmedAt: isRecorded ? latest(seenAt, record.seenAt) : seenAt,
  }
}

interface Holding {
  readonly held: Held
  readonly part: Collection
}

/** Whether the one is the state to show. */
function isBefore({ held: a, part }: Holding, { held: b, part: other }: Holding): boolean {
  if (isSame(a, b)) return isNewer(part.version, other.version)
  if (!isSameVersion(a, b) && isNewer(a.version, b.version)) return true
  return (isSameVersion(a, b) || !isNewer(b.version, a.version)) && a.body.serial > b.body.serial
}
