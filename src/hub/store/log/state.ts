import { latest } from '../../../base/clock.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { isSelective } from '../../../api/kube/selectors.ts'
import {
  nameKey,
  textInScope,
  textOfScope,
  type CollectionAddress,
  type Part,
  type ScopeKey,
} from './address.ts'
import type { Body } from './body.ts'
import { heldOf, isChange, isAtLeast, isPast, mayFollow, newest, type Held } from './held.ts'
import type * as records from './record.ts'
import { Scope, restoreScope, type Collection } from './scope.ts'
import { everyone } from '../../../api/request/identity.ts'
import { namedBySelector } from '../../../api/request/request-info.ts'
import type { Withdrawal } from '../store.ts'

/**
 * All that is stored, but for bodies. `apply` is the only function that changes it, when a record
 * has been written and when it is read at the next start.
 */
export class State {
  readonly scopes = new Map<string, Scope>()
  /** Of the next body. */
  nextSerial = 1

  scope(key: ScopeKey): Scope | undefined {
    return this.scopes.get(textOfScope(key))
  }

  collection(address: CollectionAddress): Collection | undefined {
    return this.scope(address.scope)?.collections.get(textInScope(address))
  }

  *collections(): Iterable<Collection> {
    for (const { collections } of this.scopes.values()) yield* collections.values()
  }

  get parts(): readonly Part[] {
    const scopes = [...this.scopes.values()]
    return scopes.flatMap((each) => [...each.parts()].map(([text]) => [each.key, text] as const))
  }

  /** Bytes of what is stored; roughly. */
  get weight(): number {
    let weight = 0
    for (const scope of this.scopes.values()) weight += scope.weight
    return weight
  }

  /**
   * Changes the state as the record says; `bodies` are those that it refers to, in its order.
   * Returns the previous state of each object of events, where a collection had one.
   */
  apply(record: records.LogRecord, bodies: readonly Body[]): readonly (Held | undefined)[] {
    for (const { serial } of bodies) this.nextSerial = Math.max(this.nextSerial, serial + 1)
    switch (record.kind) {
      case 'apply':
        return this.#events(record, bodies)
      case 'list':
        this.#list(record, bodies)
        break
      case 'put':
        this.#put(record, bodies)
        break
      case 'forget':
        this.#forget(record)
        break
      case 'evict':
        for (const [key, part] of record.parts) this.scope(key)?.remove(part)
        this.#removeEmpty()
        break
      case 'withdraw':
        this.withdraw(record)
        break
      case 'scope':
        this.drop((key) => textOfScope(key) === textOfScope(record.scope))
        this.scopes.set(textOfScope(record.scope), restoreScope(record, bodies))
        break
      case 'bodies':
        break
    }
    return []
  }

  /** Returns whether the holders had any of it. */
  withdraw(of: Pick<records.WithdrawRecord, 'holders' | 'what'>): boolean {
    const had = [...this.scopes.values()].filter((scope) => withdrawn(scope, of))
    this.#removeEmpty()
    return had.length > 0
  }

  drop(isDropped: (scope: ScopeKey) => boolean): void {
    for (const [text, scope] of this.scopes) if (isDropped(scope.key)) this.scopes.delete(text)
  }

  #removeEmpty(): void {
    for (const [text, scope] of this.scopes) {
      scope.removeUngiven()
      if (scope.collections.size + scope.records.size === 0) this.scopes.delete(text)
    }
  }

  #begun(key: ScopeKey): Scope {
    const scope = this.scope(key) ?? new Scope(key)
    this.scopes.set(textOfScope(key), scope)
    return scope
  }

  #events(of: records.ApplyRecord, bodies: readonly Body[]): readonly (Held | undefined)[] {
    const scope = this.scope(of.collection.scope)
    const found = scope?.collections.get(textInScope(of.collection))
    const isFollowed = found !== undefined && !isNewer(of.since, found.version)
    const collection = isFollowed ? found : undefined
    const displaced: (Held | undefined)[] = []
    const before = collection?.version ?? ''
    for (const [at, type] of of.types.entries()) {
      const [mark, body] = [of.objects[at], bodies[at]]
      if (!mark || !body) continue
      const held = heldOf(mark, body)
      const member = collection?.members.get(nameKey(held))
      // An event that is not newer came before, of a faster watch.
      const takes = collection !== undefined && !isPast(held.version, before)
      displaced.push(takes ? member : undefined)
      if (takes) collection.changedAt = newest(collection.changedAt, held.version)
      if (!scope) continue
      const into = takes ? collection : undefined
      if (type === 'DELETED') deleted(scope, of.collection, held, into)
      else changed(scope, held, into, member, of.confirmedAt)
    }
    // Older events do not tell whether it is still the newest.
    if (collection && newest(before, of.version) === of.version) {
      collection.version = of.version
      collection.confirmedAt = of.confirmedAt
      collection.seenAt = latest(collection.seenAt, of.confirmedAt)
    }
    return displaced
  }

  #list(of: records.ListRecord, bodies: readonly Body[]): void {
    const { collection: address, version } = of
    // It was lost to a damaged record.
    if (!of.objects && !this.collection(address)) return
    const scope = this.#begun(address.scope)
    const collection = scope.begun(address)
    const listed = new Set<string>()
    let isSame = collection.changedAt !== ''
    for (const [at, mark] of of.objects?.entries() ?? []) {
      const body = bodies[at]
      if (!body) continue
      const held = heldOf(mark, body)
      const key = nameKey(held)
      listed.add(key)
      if (collection.members.get(key)?.body.serial === body.serial) continue
      collection.set(held)
      isSame = false
    }
    for (const [key, member] of collection.members) {
      if (!of.objects || listed.has(key)) continue
      isSame = false
      scope.removeMember(collection, key)
      left(scope, key, version, collection, (held) => isAtLeast(member.version, held.version))
    }
    for (const key of scope.tombstones)
      if (collection.members.has(key)) scope.tombstones.delete(key)
    if (!isSame) collection.changedAt = version
    const { gvk, extra, confirmedAt } = of
    Object.assign(collection, { gvk, version, listedAt: version, extra })
    collection.confirm(confirmedAt)
    if (of.holder !== undefined) collection.holders.add(of.holder)
  }

  #put(of: records.PutRecord, [body]: readonly Body[]): void {
    if (!body) return
    const scope = this.#begun(of.scope)
    const held = heldOf(of.object, body)
    const key = nameKey(held)
    const before = scope.records.get(key)?.held
    if (!before || isChange(held, before)) scope.record(held, of.gvk, of.confirmedAt)
    else if (mayFollow(held.version, before.version)) scope.part(key)?.confirm(of.confirmedAt)
    if (of.holder !== undefined) scope.part(key)?.holders.add(of.holder)
  }

  /** Members stay: the list is still what an API server sent at its version. */
  #forget({ scope: of, object: [namespace, name] }: records.ForgetRecord): void {
    const key = nameKey({ namespace, name })
    this.scope(of)?.records.delete(key)
    this.scope(of)?.outdate(key, () => true)
  }

  /** What refers to the body of an object. */
  referringTo(of: ScopeKey, body: Body): readonly Part[] {
    const scope = this.scope(of)
    return [...(scope?.parts() ?? [])]
      .filter(([, { members }]) => members.values().some((held) => held.body === body))
      .map(([text]) => [of, text] as const)
  }
}

/** `into`: the collection that takes the event in. */
function deleted(
  scope: Scope,
  address: CollectionAddress,
  { version, ...named }: Held,
  into: Collection | undefined,
): void {
  const key = nameKey(named)
  const member = into?.members.get(key)
  if (into && member && mayFollow(version, member.version)) scope.removeMember(into, key)
  const collection = scope.collections.get(textInScope(address))
  // A record of this version is of the state that the selector no longer matches.
  const isOfNow = isSelective(address) && scope.records.get(key)?.version === version
  left(scope, key, isOfNow ? undefined : version, collection ?? { address }, (held) =>
    isNewer(version, held.version),
  )
}

function changed(
  scope: Scope,
  held: Held,
  into: Collection | undefined,
  member: Held | undefined,
  at: number,
): void {
  const key = nameKey(held)
  const record = scope.records.get(key)
  const joins = into !== undefined && (!member || isChange(held, member))
  if (joins || member?.version === held.version) scope.tombstones.delete(key)
  if (joins) into.set(held)
  // The kind stays.
  if (record?.held && isChange(held, record.held)) scope.record(held, record.gvk, at)
}

/**
 * An object has left a collection, up to a version of its record. Under a selector it may only no
 * longer match: its record is nothing any more for whom the collection was given to.
 */
function left(
  scope: Scope,
  key: string,
  upTo: string | undefined,
  from: Pick<Collection, 'address'> & Partial<Collection>,
  isOutdated: (held: Held) => boolean,
): void {
  const record = scope.records.get(key)
  const isSelection = isSelective(from.address)
  if (record && upTo !== undefined && mayFollow(upTo, record.version)) {
    for (const each of (isSelection && from.holders) || []) record.holders.delete(each)
    if (!isSelection || record.holders.size === 0) scope.records.delete(key)
  }
  scope.outdate(key, (held) => isSelection && isOutdated(held))
}

/**
 * Removes what is refused of a copy of the holders' own, and their grants to what is kept for all.
 * Returns whether there was anything.
 */
function withdrawn(
  scope: Scope,
  { holders, what }: Pick<records.WithdrawRecord, 'holders' | 'what'>,
): boolean {
  const [owner, , group, , resource] = scope.key
  if (group !== what.gvr.group || resource !== what.gvr.resource) return false
  const isOf = (identity: string): boolean => identity.startsWith(holders)
  const isRefused =
    what.of === 'collections'
      ? (part: Collection) => isPartOf(what, part.address)
      : ({ held }: Collection) =>
          held?.namespace === what.namespace && (what.name ?? held.name) === held.name
  const parts = [...(what.of === 'collections' ? scope.collections : scope.records)].filter(
    ([, part]) => isRefused(part),
  )
  if (isOf(owner)) {
    for (const [text] of parts) scope.remove(text)
    return parts.length > 0
  }
  if (owner !== everyone) return false
  let had = false
  for (const [, { holders: given }] of parts)
    for (const each of [...given].filter(isOf)) had = given.delete(each) || had
  return had
}

/** Whether a list that is refused is a part of the collection, or all of it. */
function isPartOf({ namespace, name }: Withdrawal, of: CollectionAddress): boolean {
  const fields = new URLSearchParams({ fieldSelector: of.fieldSelector })
  const ofName = namedBySelector({ query: fields })
  const isOfNames = ofName === undefined || ofName === name
  return isOfNames && (of.namespace === '' || of.namespace === namespace)
}
