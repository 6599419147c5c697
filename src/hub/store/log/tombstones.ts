import { covers } from './address.ts'
import type { Held } from './held.ts'
import type { Collection, Scope } from './scope.ts'

/*
 * Objects whose states in collections are out of date. A list stays as an API server sent it at its
 * version, though a later answer contradicts it; such an object is answered from its record only,
 * if it has one. There are tombstones only for objects that a collection holds. An event ends one,
 * as does a list.
 */

/** An API server has answered that the object does not exist. */
export function contradict(scope: Scope, key: string): void {
  if (scope.membersOf(key).length > 0) scope.tombstones.add(key)
}

/**
 * An object has left a collection with a selector: it is deleted, or only does not match any more.
 * What other collections hold is out of date, unless one has a later state already.
 */
export function unselect(scope: Scope, key: string, isOutdated: (held: Held) => boolean): void {
  const others = scope.membersOf(key)
  if (others.length > 0 && others.every(isOutdated)) scope.tombstones.add(key)
}

/** Ends those of all members of a list, and of objects that have a record and that it lacks. */
export function listed({ tombstones, records }: Scope, { address, members }: Collection): void {
  for (const key of tombstones) {
    const record = records.get(key)?.held
    if (members.has(key) || (record && covers(address, record))) tombstones.delete(key)
  }
}

/** A collection does not hold the object any more. */
export function unhold(scope: Scope, key: string): void {
  if (scope.tombstones.has(key) && scope.membersOf(key).length === 0) scope.tombstones.delete(key)
}
