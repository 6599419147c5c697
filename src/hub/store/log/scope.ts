import type { GVK } from '../../../api/kube/gvk.ts'
import { everyone } from '../../../api/request/identity.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { covers, nameKey, textInScope, type CollectionAddress, type ScopeKey } from './address.ts'
import { heldOf, type Held } from './held.ts'
import type { CollectionSnapshot, HeldMark, ScopeRecord } from './record.ts'
import type { Body } from './body.ts'

/** Bytes in memory and log of an object, and of a collection, beside bodies; roughly. */
export const entryBytes = 200
const collectionBytes = 4_000

/**
 * A list and what has changed since. An object's own record, by a get, is one of that object alone:
 * its version is the object's, and its kind too.
 */
export class Collection {
  readonly address: CollectionAddress
  gvk: GVK = { group: '', version: '', kind: '' }
  /** The newest of the versions of the list and of later events and bookmarks. */
  version = ''
  /** Versions of the last event or list that changed it, and of the last list; '' of a record. */
  changedAt = ''
  listedAt = ''
  extra = ''
  /** When an API server last confirmed it, as recorded, and as this process knows. */
  confirmedAt = 0
  seenAt = 0
  /** Of a copy for all callers, those to whom an API server has given all of the collection. */
  readonly holders = new Set<string>()
  readonly members = new Map<string, Held>()
  /** Of the members. */
  bytes = 0

  constructor(address: CollectionAddress) {
    this.address = address
  }

  /** Of a record. */
  get held(): Held | undefined {
    return this.members.values().next().value
  }

  set(held: Held): void {
    const key = nameKey(held)
    this.remove(key)
    this.members.set(key, held)
    this.bytes += held.body.length
  }

  remove(key: string): void {
    this.bytes -= this.members.get(key)?.body.length ?? 0
    this.members.delete(key)
  }

  confirm(at: number): void {
    this.confirmedAt = this.seenAt = at
  }

  get weight(): number {
    return (
      this.bytes + this.members.size * entryBytes + (this.changedAt === '' ? 0 : collectionBytes)
    )
  }
}

/** Whether the holder may have it; `undefined`: may have all. */
export const isGiven = ({ holders }: Collection, holder: string | undefined): boolean =>
  holder === undefined || holders.has(holder)

/** The answers to one identity, or to all, in one representation, of one resource. */
export class Scope {
  readonly key: ScopeKey
  /** By their text in the scope. */
  readonly collections = new Map<string, Collection>()
  /** By the `nameKey` of their objects. */
  readonly records = new Map<string, Collection>()
  /**
   * Objects of which the states in collections are out of date, until an event, a list or a put
   * brings them.
   */
  readonly tombstones = new Set<string>()

  constructor(key: ScopeKey) {
    this.key = key
  }

  /** Records and collections, in the order in which they can be removed: see `removeMember`. */
  *parts(): Iterable<readonly [text: string, part: Collection]> {
    yield* this.records
    yield* this.collections
  }

  /** A collection by its text, or an object's record by its `nameKey`. */
  part(text: string): Collection | undefined {
    return this.collections.get(text) ?? this.records.get(text)
  }

  /** The collection, which is empty if it is new. */
  begun(address: CollectionAddress): Collection {
    const text = textInScope(address)
    const collection = this.collections.get(text) ?? new Collection(address)
    this.collections.set(text, collection)
    return collection
  }

  /** The object's record takes its state. */
  record(held: Held, gvk: GVK, at: number): void {
    const { namespace, name, version } = held
    const fieldSelector = `metadata.name=${name}`
    const address = { scope: this.key, namespace, labelSelector: '', fieldSelector }
    const record = this.records.get(nameKey(held)) ?? new Collection(address)
    this.records.set(nameKey(held), record)
    record.set(held)
    record.confirm(at)
    Object.assign(record, { gvk, version })
  }

  /** Removes a collection by its text, or an object's record by its `nameKey`. */
  remove(text: string): void {
    const collection = this.collections.get(text)
    if (!collection) return void this.records.delete(text)
    this.collections.delete(text)
    for (const key of collection.members.keys()) {
      this.removeMember(collection, key)
      this.outdate(key, () => false)
    }
  }

  /** The object's record takes its newer state: who has been shown that sees no older one. */
  removeMember(from: Collection, key: string): void {
    const [held, record] = [from.members.get(key), this.records.get(key)]
    const isLater = held && record && isNewer(held.version, record.version)
    if (isLater && !this.tombstones.has(key)) this.record(held, record.gvk, from.seenAt)
    from.remove(key)
  }

  /**
   * The object has left a collection. What others hold is out of date if all of it is: a list stays
   * as an API server sent it at its version, but its state is not found by name.
   */
  outdate(key: string, isOutdated: (held: Held) => boolean): void {
    const others = this.membersOf(key)
    if (others.length === 0) this.tombstones.delete(key)
    else if (others.every(isOutdated)) this.tombstones.add(key)
  }

  /**
   * Removes what no caller may have any more of a copy for all callers. An object's record may be
   * had by a collection that would have the object, too.
   */
  removeUngiven(): void {
    if (this.key[0] !== everyone) return
    for (const [text, { holders }] of this.collections) if (holders.size === 0) this.remove(text)
    for (const [key, { holders, held }] of this.records) {
      const isCovered = this.collections.values().some((of) => held && covers(of.address, held))
      if (holders.size === 0 && !isCovered) this.records.delete(key)
    }
  }

  get weight(): number {
    let weight = 0
    for (const [, part] of this.parts()) weight += part.weight
    return weight
  }

  /** What collections hold of the object. */
  membersOf(key: string): readonly Held[] {
    return [...this.collections.values()].flatMap(({ members }) => members.get(key) ?? [])
  }
}

/** The scope as it is now. */
export function snapshotOf(scope: Scope): {
  readonly record: ScopeRecord
  readonly placed: readonly Body[]
} {
  // Several may refer to one body.
  const numbers = new Map<Body, number>()
  const mark = ({ namespace, name, uid, version, body }: Held): HeldMark => {
    const number = numbers.get(body) ?? numbers.size
    numbers.set(body, number)
    return [namespace, name, uid, version, number]
  }
  const snapshot = (of: Collection): CollectionSnapshot => {
    const { gvk, version, changedAt, listedAt, extra } = of
    const { namespace, labelSelector, fieldSelector } = of.address
    const named = { namespace, labelSelector, fieldSelector }
    const head = { gvk, version, changedAt, listedAt, extra, confirmedAt: of.seenAt }
    return {
      ...head,
      of: named,
      holders: [...of.holders],
      members: [...of.members.values()].map(mark),
    }
  }
  const record: ScopeRecord = {
    kind: 'scope',
    scope: scope.key,
    tombstones: [...scope.tombstones],
    records: [...scope.records.values()].map(snapshot),
    collections: [...scope.collections.values()].map(snapshot),
  }
  return { record, placed: [...numbers.keys()] }
}

export function restoreScope(of: ScopeRecord, bodies: readonly Body[]): Scope {
  const scope = new Scope(of.scope)
  const restored = ({ of: named, members, holders, ...head }: CollectionSnapshot): Collection => {
    const collection = Object.assign(new Collection({ scope: of.scope, ...named }), head)
    for (const holder of holders) collection.holders.add(holder)
    collection.seenAt = head.confirmedAt
    for (const [namespace, name, uid, version, number] of members) {
      const body = bodies[number]
      if (!body) throw new RangeError('a snapshot refers to a body that it does not have')
      collection.set(heldOf([namespace, name, uid, version], body))
    }
    return collection
  }
  for (const key of of.tombstones) scope.tombstones.add(key)
  for (const each of of.collections) scope.collections.set(textInScope(each.of), restored(each))
  for (const each of of.records.map(restored))
    if (each.held) scope.records.set(nameKey(each.held), each)
  return scope
}
