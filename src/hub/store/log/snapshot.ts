import { nameKey, textInScope } from './address.ts'
import type { Body } from './body.ts'
import { heldOf, type Held } from './held.ts'
import type { CollectionSnapshot, HeldMark, ScopeRecord } from './record.ts'
import { Collection, Scope } from './scope.ts'

/** The record of a scope as it is now. */
export function snapshotOf(scope: Scope): ScopeRecord {
  // Several may refer to one body.
  const numbers = new Map<Body, number>()
  const mark = ({ namespace, name, uid, version, body }: Held): HeldMark => {
    const number = numbers.get(body) ?? numbers.size
    numbers.set(body, number)
    return [namespace, name, uid, version, number]
  }
  return {
    kind: 'scope',
    scope: scope.key,
    tombstones: [...scope.tombstones],
    records: [...scope.records.values()].map((of) => [
      mark(of.held),
      of.gvk,
      of.confirmedAt,
      [...of.holders],
    ]),
    collections: [...scope.collections.values()].map((of) => snapshotOfCollection(of, mark)),
    bodies: [...numbers.keys()].map((body) => body.mark),
  }
}

function snapshotOfCollection(of: Collection, mark: (held: Held) => HeldMark): CollectionSnapshot {
  const { namespace, labelSelector, fieldSelector } = of.address
  const { gvk, version, changedAt, listedAt, extra, seenAt, members } = of
  return {
    of: { namespace, labelSelector, fieldSelector },
    gvk,
    version,
    changedAt,
    listedAt,
    extra,
    confirmedAt: seenAt,
    holders: [...of.holders],
    members: [...members.values()].map(mark),
  }
}

export function restoreScope(of: ScopeRecord, bodies: readonly Body[]): Scope {
  const scope = new Scope(of.scope)
  const held = ([namespace, name, uid, version, number]: HeldMark): Held => {
    const body = bodies[number]
    if (!body) throw new RangeError('a snapshot refers to a body that it does not have')
    return heldOf([namespace, name, uid, version], body)
  }
  for (const key of of.tombstones) scope.tombstones.add(key)
  for (const [mark, gvk, confirmedAt, holders = []] of of.records) {
    scope.setRecord({ held: held(mark), gvk, confirmedAt })
    for (const holder of holders) scope.records.get(nameKey(held(mark)))?.holders.add(holder)
  }
  for (const { of: named, members, holders = [], ...head } of of.collections) {
    const collection = Object.assign(new Collection({ scope: of.scope, ...named }), head)
    for (const holder of holders) collection.holders.add(holder)
    collection.seenAt = head.confirmedAt
    for (const mark of members) collection.set(held(mark))
    scope.collections.set(textInScope(named), collection)
  }
  return scope
}
