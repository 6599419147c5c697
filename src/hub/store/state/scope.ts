import { objectKind } from '../../../api/codec/list.ts'
import type { GVK } from '../../../api/kube/gvk.ts'
import type { CollectionKey, StoredObject } from '../store.ts'
import { covers, nameKey, textInScope, isIn, type Named, type ScopeKey } from './address.ts'
import { heldOf, isChange, isSame, isSameVersion, newest, type Body, type Held } from './held.ts'
import type { CollectionSnapshot, ScopeRecord } from './record.ts'
import { latest } from '../../../base/clock.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import { isSelective, selectorOfName } from '../../../api/kube/selectors.ts'

/** Bytes in memory and log of an object, and of a collection, beside bodies; roughly. */
export const entryBytes = 200
const collectionBytes = 4_000

/**
 * A list and what has changed since. An object's own record, by a get, is one of that object alone:
 * its version is the object's, and its kind too.
 */
export class Collection {
  readonly key: CollectionKey
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
  /** Those to whom an API server has given all of the collection. */
  readonly holders = new Set<string>()
  readonly members = new Map<string, Held>()
  /** Of the members. */
  bytes = 0

  constructor(key: CollectionKey) {
    this.key = key
  }

  /** Of a record. */
  get held(): Held | undefined {
    return this.members.values().next().value
  }

  set(held: Held): void {
    const key = nameKey(held)
    // Not removed before: V8 would leave a table of the Map behind every so often, and all in it.
    this.bytes += held.body.length - (this.members.get(key)?.body.length ?? 0)
    this.members.set(key, held)
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

  get snapshot(): CollectionSnapshot {
    const { gvk, version, changedAt, listedAt, extra, seenAt: confirmedAt } = this
    const { namespace, labelSelector, fieldSelector } = this.key
    return {
      of: { ...(namespace !== undefined && { namespace }), labelSelector, fieldSelector },
      gvk,
      version,
      changedAt,
      listedAt,
      extra,
      confirmedAt,
      holders: [...this.holders],
      objects: [...this.members.values()].map((held) => [
        held.namespace,
        held.name,
        held.uid,
        held.version,
      ]),
    }
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

  /** Records and collections. */
  *parts(): Iterable<readonly [text: string, part: Collection]> {
    yield* this.records
    yield* this.collections
  }

  /** A collection by its text, or an object's record by its `nameKey`. */
  part(text: string): Collection | undefined {
    return this.collections.get(text) ?? this.records.get(text)
  }

  /** The collection, which is empty if it is new. */
  begun(key: CollectionKey): Collection {
    const text = textInScope(key)
    const collection = this.collections.get(text) ?? new Collection(key)
    this.collections.set(text, collection)
    return collection
  }

  /** The object's record takes its state. */
  record(held: Held, gvk: GVK, at: number): void {
    const { namespace, name, version } = held
    const selectors = { labelSelector: '', fieldSelector: selectorOfName(name) }
    const key = nameKey(held)
    const record = this.records.get(key) ?? new Collection({ ...this.key, namespace, ...selectors })
    this.records.set(key, record)
    record.set(held)
    record.confirm(at)
    Object.assign(record, { gvk, version })
  }

  /**
   * A collection holds a new state: so does the object's record, if there is one, of the kind that
   * it has. Thus who is shown that state sees no older one when the collection goes.
   */
  follow(held: Held, at: number): void {
    const record = this.records.get(nameKey(held))
    if (record?.held && isChange(held, record.held)) this.record(held, record.gvk, at)
  }

  /**
   * Evicts what API servers have not contradicted: of an object no older state is shown then.
   * Returns the newest version that is lost.
   */
  evict(text: string, missed: string): string {
    const { version = '', members = [] } = this.part(text) ?? {}
    this.remove(text)
    this.outdate(text, (held) => isNewer(missed, held.version))
    for (const [key, lost] of members)
      this.outdate(key, (held) => isNewer(lost.version, held.version))
    return newest(version, missed)
  }

  /** Removes a collection by its text, or an object's record by its `nameKey`. */
  remove(text: string): void {
    const { members = [] } = this.part(text) ?? {}
    this.records.delete(text)
    this.collections.delete(text)
    for (const [key] of members) if (this.tombstones.has(key)) this.outdate(key, () => false)
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

  /** Removes what no caller may have any more. */
  removeUngiven(): void {
    for (const [text, { holders }] of this.parts()) if (holders.size === 0) this.remove(text)
  }

  get weight(): number {
    let weight = 0
    for (const [, part] of this.parts()) weight += part.weight
    return weight
  }

  /** Whether any state of the object is stored, by its `nameKey`. */
  has(key: string): boolean {
    return this.records.has(key) || this.membersOf(key).length > 0
  }

  /** What collections hold of the object. */
  membersOf(key: string): readonly Held[] {
    return [...this.collections.values()].flatMap(({ members }) => members.get(key) ?? [])
  }
}

/** The scope as it is now, and the bodies in it. */
export function snapshotOf(scope: Scope): {
  readonly record: ScopeRecord
  readonly placed: readonly Body[]
} {
  const { key, tombstones, records, collections } = scope
  const snapshots = (of: Iterable<Collection>): CollectionSnapshot[] =>
    [...of].map(({ snapshot }) => snapshot)
  return {
    record: {
      kind: 'scope',
      scope: key,
      tombstones: [...tombstones],
      records: snapshots(records.values()),
      collections: snapshots(collections.values()),
    },
    placed: [...scope.parts()].flatMap(([, { members }]) =>
      [...members.values()].map(({ body }) => body),
    ),
  }
}

export function restoreScope(of: ScopeRecord, bodies: readonly Body[]): Scope {
  const scope = new Scope(of.scope)
  // Several may refer to one body.
  const bySerial = new Map(bodies.map((body) => [body.serial, body]))
  let at = 0
  const restored = ({ of: key, objects, holders, ...head }: CollectionSnapshot): Collection => {
    const part = Object.assign(new Collection({ ...of.scope, ...key }), head)
    part.seenAt = head.confirmedAt
    for (const holder of holders) part.holders.add(holder)
    for (const mark of objects) {
      const body = bySerial.get(bodies[at++]?.serial ?? 0)
      if (!body) throw new RangeError('a snapshot refers to a body that it does not have')
      part.set(heldOf(mark, body))
    }
    return part
  }
  for (const key of of.tombstones) scope.tombstones.add(key)
  for (const each of of.records.map(restored))
    if (each.held) scope.records.set(nameKey(each.held), each)
  for (const each of of.collections) scope.collections.set(textInScope(each.of), restored(each))
  return scope
}

/** One stored version of an object. */
interface ObjectState extends Omit<StoredObject, 'object'> {
  readonly held: Held
}

/**
 * What is known of an object by its name: its newest state, unless something later contradicts it.
 * Of versions that do not compare, and of one version in different bytes, the one written last; of
 * one version in the same bytes, the one confirmed last. 'absent': a collection that would have the
 * object does not, at a newer version. Unless a selection has changed since, which the object may
 * have left, or something was lost up to `lostAt` of `State`. By what the holder was given, or all.
 */
export function knownObject(
  scope: Scope,
  named: Named,
  holder: string | undefined,
  lostAt: string,
): ObjectState | 'absent' | undefined {
  const key = nameKey(named)
  const record = scope.records.get(key)
  const isOutdated = scope.tombstones.has(key)
  let known: Holding | undefined
  let deniedAt: string | undefined
  /** The last change of any selection that the object may have been in, or of what was lost. */
  let selectedAt = lostAt
  for (const part of [...(record ? [record] : []), ...scope.collections.values()]) {
    if (!isIn(part.key, named.namespace) || !isGiven(part, holder)) continue
    if (isSelective(part.key)) selectedAt = newest(selectedAt, part.changedAt)
    const held = part.members.get(key)
    if (!held && covers(part.key, named)) deniedAt = newest(deniedAt ?? part.version, part.version)
    if (!held || (isOutdated && part !== record)) continue
    if (!known || isShownOver({ held, part }, known)) known = { held, part }
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
    gvk: objectKind(gvk),
    confirmedVersion,
    confirmedAt: isRecorded ? latest(seenAt, record.seenAt) : seenAt,
  }
}

interface Holding {
  readonly held: Held
  readonly part: Collection
}

/** Whether the first is the state to show. */
function isShownOver({ held: a, part }: Holding, { held: b, part: other }: Holding): boolean {
  if (isSame(a, b)) return isNewer(part.version, other.version)
  if (!isSameVersion(a, b) && isNewer(a.version, b.version)) return true
  return (isSameVersion(a, b) || !isNewer(b.version, a.version)) && a.body.serial > b.body.serial
}
