import type { GVK } from '../../../api/kube/gvk.ts'
import { everyone } from '../../../api/request/identity.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { covers, nameKey, textInScope, type CollectionAddress, type ScopeKey } from './address.ts'
import { heldOf, type Held } from './held.ts'
import type { GrantRecord, CollectionSnapshot, HeldMark, ScopeRecord } from './record.ts'
import type { Body } from './body.ts'

/** Bytes in memory and log of an object, and of a collection, beside bodies; roughly. */
export const entryBytes = 200
const collectionBytes = 4_000

/** A list and what has changed since. */
export class Collection {
  readonly address: CollectionAddress
  gvk: GVK = { group: '', version: '', kind: '' }
  /** The newest of the versions of the list and of later events and bookmarks. */
  version = ''
  /** Versions of the last event or list that changed it, and of the last list. */
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

  set(held: Held): void {
    const key = nameKey(held)
    this.remove(key)
    this.members.set(key, held)
    this.bytes += held.body.length
  }

  remove(key: string): void {
    const member = this.members.get(key)
    if (!member) return
    this.bytes -= member.body.length
    this.members.delete(key)
  }

  get weight(): number {
    return this.bytes + this.members.size * entryBytes + collectionBytes
  }
}

/** An object's record of its own. */
export interface ObjectRecord {
  readonly held: Held
  readonly gvk: GVK
  confirmedAt: number
  /** The same of the object. */
  readonly holders: Set<string>
}

export const recordWeight = ({ held }: ObjectRecord): number => held.body.length + entryBytes

/** The answers to one identity, or to all, in one representation, of one resource. */
export class Scope {
  readonly key: ScopeKey
  /** By their text in the scope. */
  readonly collections = new Map<string, Collection>()
  readonly records = new Map<string, ObjectRecord>()
  /**
   * Objects of which the states in collections are out of date, until an event, a list or a put
   * brings them.
   */
  readonly tombstones = new Set<string>()
  #recordBytes = 0

  constructor(key: ScopeKey) {
    this.key = key
  }

  setRecord(of: Omit<ObjectRecord, 'holders'>): void {
    const key = nameKey(of.held)
    const record = { ...of, holders: this.records.get(key)?.holders ?? new Set<string>() }
    this.removeRecord(key)
    this.records.set(key, record)
    this.#recordBytes += recordWeight(record)
  }

  removeRecord(key: string): void {
    const record = this.records.get(key)
    if (!record) return
    this.#recordBytes -= recordWeight(record)
    this.records.delete(key)
  }

  /** The collection, which is empty if it is new. */
  begun(address: CollectionAddress): Collection {
    const text = textInScope(address)
    const collection = this.collections.get(text) ?? new Collection(address)
    this.collections.set(text, collection)
    return collection
  }

  /** Removes a collection by its text, or an object's record by its `nameKey`. */
  remove(of: string): void {
    const collection = this.collections.get(of)
    if (!collection) return this.removeRecord(of)
    this.collections.delete(of)
    for (const key of collection.members.keys()) {
      this.removeMember(collection, key)
      this.outdate(key, () => false)
    }
  }

  /** The object's record takes its newer state: who has been shown that sees no older one. */
  removeMember(from: Collection, key: string): void {
    const [held, record] = [from.members.get(key), this.records.get(key)]
    const isLater = held && record && isNewer(held.version, record.held.version)
    if (isLater && !this.tombstones.has(key))
      this.setRecord({ held, gvk: record.gvk, confirmedAt: from.seenAt })
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
    const isGiven = ({ held, holders }: ObjectRecord): boolean =>
      holders.size > 0 || this.collections.values().some(({ address }) => covers(address, held))
    for (const [key, record] of this.records) if (!isGiven(record)) this.removeRecord(key)
  }

  get weight(): number {
    let weight = this.#recordBytes
    for (const collection of this.collections.values()) weight += collection.weight
    return weight
  }

  /** Those of a collection by its text, or of an object by its `nameKey`. */
  holders(to: string): Set<string> | undefined {
    return this.collections.get(to)?.holders ?? this.records.get(to)?.holders
  }

  /**
   * The record after which the holder may read a collection (by its text) or an object (by its
   * `nameKey`); `undefined`: it may, or nothing is stored.
   */
  grantOf(to: string, holder: string | undefined): GrantRecord | undefined {
    const holders = this.holders(to)
    if (!holders || holder === undefined || holders.has(holder)) return undefined
    return { kind: 'grant', part: [this.key, to], holder }
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
  const record: ScopeRecord = {
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
  }
  return { record, placed: [...numbers.keys()] }
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
