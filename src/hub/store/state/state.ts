import { latest } from '../../../base/clock.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { isSelective } from '../../../api/kube/selectors.ts'
import {
  isIn,
  nameKey,
  partOf,
  textInScope,
  textOf,
  textOfResource,
  textOfScope,
  scopeOf,
  type Part,
  type ScopeKey,
} from './address.ts'
import {
  heldOf,
  isChange,
  isAtLeast,
  isPast,
  mayFollow,
  newest,
  type Body,
  type Held,
} from './held.ts'
import type * as records from './record.ts'
import { Scope, restoreScope, type Collection } from './scope.ts'
import { namedBySelector } from '../../../api/request/request-info.ts'
import type { CollectionKey, Withdrawal } from '../store.ts'

/** A list that is being read, and may be committed. */
export interface ListInProgress {
  /** `reader`: whose request it answers. */
  readonly parts: { readonly key: CollectionKey; readonly reader: string }
  readonly stagedBytes: number
  /** Those that it refers to. */
  bodies(): Iterable<Body>
}

/**
 * All that is stored, but for bodies. `apply` changes it, as the log says and when that is read at
 * the next start. Of this process alone are the lists in progress and, until the log is written
 * anew, when parts were seen last.
 */
export class State {
  readonly scopes = new Map<string, Scope>()
  /** Without those that could bring back what was evicted or withdrawn meanwhile. */
  readonly lists = new Set<ListInProgress>()
  /** Of the last body. */
  lastSerial = 0
  /** The newest version of what was evicted, by its resource, while any of that is stored. */
  readonly #lost = new Map<string, readonly [of: ScopeKey, at: string]>()

  scope(key: ScopeKey): Scope | undefined {
    return this.scopes.get(textOfScope(key))
  }

  collection(key: CollectionKey): Collection | undefined {
    return this.scope(key)?.collections.get(textInScope(key))
  }

  *collections(): Iterable<Collection> {
    for (const { collections } of this.scopes.values()) yield* collections.values()
  }

  /** All that is stored, or being read. */
  get parts(): readonly Part[] {
    const scopes = [...this.scopes.values()]
    return [
      ...scopes.flatMap((each) => [...each.parts()].map(([text]) => [each.key, text] as const)),
      ...[...this.lists].map(({ parts }) => partOf(parts.key)),
    ]
  }

  /**
   * The newest version of what was evicted, in any representation: at older ones nothing is known
   * to be absent.
   */
  lostAt(key: ScopeKey): string {
    return this.#lost.get(textOfResource(key))?.[1] ?? ''
  }

  /** What was evicted, for a start that reads these after the scopes, and not what came before. */
  get losses(): readonly records.EvictRecord[] {
    return [...this.#lost.values()].map(([scope, version]) => ({
      kind: 'evict',
      parts: [[scope, '']],
      version,
    }))
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
    for (const { serial } of bodies) this.lastSerial = Math.max(this.lastSerial, serial)
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
        this.#evict(record)
        break
      case 'withdraw':
        for (const [of, each] of this.withdrawn(record)) of.delete(each)
        this.#removeEmpty()
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

  /** The lists in progress, and the grants, that a refusal removes, each with the set it is in. */
  *withdrawn(of: records.WithdrawRecord): Generator<readonly [Set<unknown>, unknown]> {
    const { holders, what } = of
    const isOfCollections = what.of === 'collections'
    for (const list of isOfCollections ? this.lists : [])
      if (list.parts.reader.startsWith(holders) && isRefused(what, list.parts))
        yield [this.lists, list]
    for (const { collections, records } of this.scopes.values())
      for (const part of (isOfCollections ? collections : records).values())
        for (const each of isRefused(what, part) ? part.holders : [])
          if (each.startsWith(holders)) yield [part.holders, each]
  }

  drop(isDropped: (scope: ScopeKey) => boolean): void {
    for (const [text, scope] of this.scopes) if (isDropped(scope.key)) this.scopes.delete(text)
  }

  #evict({ parts, version = '' }: records.EvictRecord): void {
    for (const [key, part] of parts) {
      const lost = this.scope(key)?.evict(part, version) ?? version
      this.#lost.set(textOfResource(key), [key, newest(this.lostAt(key), lost)])
    }
    const evicted = new Set(parts.map(([key, part]) => textOfScope(key) + part))
    for (const list of this.lists) if (evicted.has(textOf(list.parts.key))) this.lists.delete(list)
    this.#removeEmpty()
  }

  #removeEmpty(): void {
    for (const [text, scope] of this.scopes) {
      scope.removeUngiven()
      if (scope.collections.size + scope.records.size === 0) this.scopes.delete(text)
    }
    const stored = new Set([...this.scopes.values()].map(({ key }) => textOfResource(key)))
    for (const text of this.#lost.keys()) if (!stored.has(text)) this.#lost.delete(text)
  }

  #begun(key: ScopeKey): Scope {
    const scope = this.scope(key) ?? new Scope(key)
    this.scopes.set(textOfScope(key), scope)
    return scope
  }

  #events(of: records.ApplyRecord, bodies: readonly Body[]): readonly (Held | undefined)[] {
    const scope = this.scope(of.collection)
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
    const { collection: key, version } = of
    // It was lost to a damaged record.
    if (!of.objects && !this.collection(key)) return
    const scope = this.#begun(scopeOf(key))
    const collection = scope.begun(key)
    const listed = new Set<string>()
    let isSame = collection.changedAt !== ''
    // What has left a selection since may still be in this list as it was.
    const isBehind = scope.collections
      .values()
      .some((each) => isSelective(each.key) && isNewer(each.changedAt, version))
    for (const [at, mark] of of.objects?.entries() ?? []) {
      const body = bodies[at]
      if (!body) continue
      const held = heldOf(mark, body)
      const name = nameKey(held)
      listed.add(name)
      const isHeld = collection.members.get(name)?.body.serial === body.serial
      if (!isHeld || !isBehind) scope.tombstones.delete(name)
      if (isHeld) continue
      collection.set(held)
      scope.follow(held, of.confirmedAt)
      isSame = false
    }
    for (const [name, member] of collection.members) {
      if (!of.objects || listed.has(name)) continue
      isSame = false
      collection.remove(name)
      left(scope, name, version, collection, (held) => isAtLeast(member.version, held.version))
    }
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
    else if (mayFollow(held.version, before.version))
      scope.records.get(key)?.confirm(of.confirmedAt)
    if (of.holder !== undefined) scope.records.get(key)?.holders.add(of.holder)
    if (scope.tombstones.has(key)) return
    for (const member of scope.membersOf(key))
      if (isNewer(member.version, held.version)) scope.follow(member, of.confirmedAt)
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
  of: CollectionKey,
  { version, ...named }: Held,
  into: Collection | undefined,
): void {
  const key = nameKey(named)
  const member = into?.members.get(key)
  if (member && mayFollow(version, member.version)) into?.remove(key)
  const collection = scope.collections.get(textInScope(of))
  // A record of this version is of the state that the selector no longer matches.
  const isOfNow = isSelective(of) && scope.records.get(key)?.version === version
  left(scope, key, isOfNow ? undefined : version, collection ?? { key: of }, (held) =>
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
  const joins = into !== undefined && (!member || isChange(held, member))
  if (joins || member?.version === held.version) scope.tombstones.delete(key)
  if (joins) into.set(held)
  scope.follow(held, at)
}

/**
 * An object has left a collection, up to a version of its record. Under a selector it may only no
 * longer match: its record is nothing any more for whom the collection was given to.
 */
function left(
  scope: Scope,
  key: string,
  upTo: string | undefined,
  from: Pick<Collection, 'key'> & Partial<Collection>,
  isOutdated: (held: Held) => boolean,
): void {
  const record = scope.records.get(key)
  const isSelection = isSelective(from.key)
  if (record && upTo !== undefined && mayFollow(upTo, record.version)) {
    for (const each of from.holders ?? []) record.holders.delete(each)
    if (!isSelection || !from.holders || record.holders.size === 0) scope.records.delete(key)
  }
  scope.outdate(key, (held) => isSelection && isOutdated(held))
}

const isRefused = (
  what: Withdrawal,
  { key, held }: { readonly key: CollectionKey; readonly held?: Held | undefined },
): boolean =>
  key.gvr.group === what.gvr.group &&
  key.gvr.resource === what.gvr.resource &&
  (what.of === 'collections'
    ? isPartOf(what, key)
    : held?.namespace === what.namespace && (what.name ?? held.name) === held.name)

/** Whether a list that is refused is a part of the collection, or all of it. */
function isPartOf({ namespace, name }: Withdrawal, of: CollectionKey): boolean {
  const fields = new URLSearchParams({ fieldSelector: of.fieldSelector })
  const ofName = namedBySelector({ query: fields })
  const isOfNames = ofName === undefined || ofName === name
  return isOfNames && isIn(of, namespace)
}
