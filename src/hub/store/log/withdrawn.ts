import { everyone } from '../../../api/request/identity.ts'
import { namedBySelector } from '../../../api/request/request-info.ts'
import type { Withdrawal } from '../store.ts'
import type { CollectionAddress } from './address.ts'
import type { WithdrawRecord } from './record.ts'
import type { Scope } from './scope.ts'

/**
 * Removes what is refused of a copy of the holders' own, and their grants to what is kept for all.
 * Returns whether there was anything.
 */
export function withdrawn(
  scope: Scope,
  { holders, what }: Pick<WithdrawRecord, 'holders' | 'what'>,
): boolean {
  const [owner, , group, , resource] = scope.key
  if (group !== what.gvr.group || resource !== what.gvr.resource) return false
  const isOf = (identity: string): boolean => identity.startsWith(holders)
  const parts = what.of === 'collections' ? collectionsIn(scope, what) : recordsIn(scope, what)
  if (isOf(owner)) {
    for (const each of parts) scope.remove(each)
    return parts.length > 0
  }
  if (owner !== everyone) return false
  const given = parts.flatMap((part) => [...(scope.holders(part) ?? [])].filter(isOf))
  for (const part of parts) for (const each of given) scope.holders(part)?.delete(each)
  return given.length > 0
}

const collectionsIn = ({ collections }: Scope, what: Withdrawal): string[] =>
  [...collections].filter(([, { address }]) => isPartOf(what, address)).map(([text]) => text)

const recordsIn = ({ records }: Scope, { namespace, name }: Withdrawal): string[] =>
  [...records]
    .filter(([, { held }]) => held.namespace === namespace)
    .filter(([, { held }]) => name === undefined || held.name === name)
    .map(([key]) => key)

/** Whether a list that is refused is a part of the collection, or all of it. */
function isPartOf({ namespace, name }: Withdrawal, of: CollectionAddress): boolean {
  const fields = new URLSearchParams({ fieldSelector: of.fieldSelector })
  const ofName = namedBySelector({ query: fields })
  const isOfNames = ofName === undefined || ofName === name
  return isOfNames && (of.namespace === '' || of.namespace === namespace)
}
