import { isNewer, resourceVersion } from '../../../api/kube/resource-version.ts'
import { covers } from './address.ts'
import type { Collection, Scope } from './scope.ts'

/*
 * Objects whose states in collections are out of date. A list stays as an API server sent it at its
 * version, though a later answer contradicts it; such an object is answered from its record only,
 * if it has one. There are tombstones only for objects that a collection holds.
 */

/** An API server has answered that the object does not exist: no stored state is valid. */
export function contradict(scope: Scope, key: string): void {
  if (scope.holds(key)) scope.tombstones.set(key, '')
  else scope.tombstones.delete(key)
}

/**
 * An object has left a collection with a selector: it is deleted, or only does not match any more.
 * States in other collections older than `below` are out of date.
 */
export function unselect(scope: Scope, key: string, below: string): void {
  if (resourceVersion(below) === undefined || !scope.holds(key)) return
  const known = scope.tombstones.get(key)
  if (known === undefined || isNewer(below, known)) scope.tombstones.set(key, below)
}

/**
 * An API server has sent the object again, which ends a tombstone unless the state is older than
 * that.
 */
export function confirm(scope: Scope, key: string, version: string): void {
  const below = scope.tombstones.get(key)
  if (below !== undefined && !isNewer(below, version)) scope.tombstones.delete(key)
}

/**
 * Ends the tombstones of all members of a list at `version`, and of objects that have a record and
 * that the list lacks.
 */
export function listed(scope: Scope, { address, members }: Collection, version: string): void {
  for (const [key, below] of scope.tombstones) {
    const record = scope.records.get(key)?.held
    const isCovered = below === '' && record !== undefined && covers(address, record)
    const isListed = members.has(key) && (below === '' || !isNewer(below, version))
    if (isCovered || isListed) scope.tombstones.delete(key)
  }
}

/** A collection does not hold the object any more. */
export function unhold(scope: Scope, key: string): void {
  if (scope.tombstones.has(key) && !scope.holds(key)) scope.tombstones.delete(key)
}

/** Collections and records were evicted. */
export function prune(scope: Scope): void {
  for (const key of scope.tombstones.keys()) if (!scope.records.has(key)) unhold(scope, key)
}
