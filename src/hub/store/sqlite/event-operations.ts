import type { ObjectEvent } from '../../../api/codec/watch.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import type { CollectionRow } from './collection-rows.ts'
import { isChange, type ObjectRow } from './object-row.ts'
import type { ScopeKey } from './address.ts'
import { pack, unpack, type Apply, type DamagedObject, type Displaced } from './messages.ts'
import type { Objects } from './objects.ts'
import { isSelective } from '../../../api/kube/selectors.ts'
import type { Tables } from './tables.ts'
import { isPast, mayFollow, newest } from './versions.ts'

/** An event with the rows that it applies to. */
interface AppliedEvent {
  readonly type: ObjectEvent['type']
  readonly object: ApiObject
  /**
   * The collection that takes the event in. Absent where it missed a write or has the event
   * already: then the event updates only the object's record.
   */
  readonly collection: CollectionRow | undefined
  /** The object's row in the collection, whether that takes the event in or not. */
  readonly member: ObjectRow | undefined
}

/** Applies the events of a watch to a collection. */
export class EventOperations {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  apply(apply: Apply): Displaced | undefined {
    const { collection: address, types, confirmedAt } = apply
    const { collections, members, objects } = this.#tables
    const found = apply.whole ? collections.find(address) : undefined
    const collection = found && isFollowedBy(apply, found) ? found : undefined
    const changed = unpack(apply.objects)
    const previous = apply.previous ? new Previous(objects, address.scope) : undefined
    changed.forEach((object, position) => {
      const member = collection && members.find(collection.id, object)
      const applies =
        collection !== undefined && !isPast(object.resourceVersion, collection.version)
      // The member of one that came before has its state already, or a later one.
      if (applies && member) previous?.note(position, member)
      this.#applyOne(apply, {
        type: types[position] ?? 'MODIFIED',
        object,
        collection: applies ? collection : undefined,
        member,
      })
    })
    if (collection) {
      const version = newest(collection.version, apply.version)
      // Older events do not tell whether it is still the newest.
      if (version === apply.version) {
        collections.confirm(collection.id, address, version, confirmedAt)
      }
      this.#endAt(version, collection, changed, confirmedAt)
    }
    return previous?.all()
  }

  #applyOne(apply: Apply, met: AppliedEvent): void {
    const { objects, eventLogs } = this.#tables
    const { type, object, collection, member } = met
    const { scope } = apply.collection
    const isDeleted = type === 'DELETED'
    const held =
      collection && (isDeleted ? objects.acquireOwn(scope, object) : objects.acquire(scope, object))
    if (collection && held) eventLogs.add(collection, type, held, member, apply.confirmedAt)
    if (isDeleted) this.#deleted(apply, met)
    else this.#changed(apply, met, held)
  }

  #deleted({ collection: address }: Apply, { object, collection, member }: AppliedEvent): void {
    const { objects, members, records, tombstones } = this.#tables
    const scope = objects.scope(address.scope)
    if (collection && member && mayFollow(object.resourceVersion, member.resourceVersion)) {
      members.remove(scope, collection.id, member)
    }
    const { resourceVersion } = object
    if (isSelective(address)) {
      // A record of this version is of the state that the selector no longer matches.
      records.removeOlder(scope, object, resourceVersion)
      tombstones.unselected(scope, object, resourceVersion)
    } else records.remove(scope, object, resourceVersion)
    tombstones.released(scope, object)
  }

  #changed(
    { collection: address, confirmedAt }: Apply,
    { object, collection, member }: AppliedEvent,
    acquired: ObjectRow | undefined,
  ): void {
    const { objects, members, records, tombstones } = this.#tables
    const scope = objects.scope(address.scope)
    const record = records.find(scope, object)
    const joins = collection !== undefined && (!member || isChange(object, member))
    const moves = record !== undefined && isChange(object, record)
    if (joins || member?.resourceVersion === object.resourceVersion)
      tombstones.confirmed(scope, object)
    if (!joins && !moves) return
    const held = acquired ?? objects.acquire(address.scope, object)
    if (joins) members.set(scope, collection.id, held, member)
    if (moves) records.move(scope, held, record, confirmedAt)
  }

  /**
   * Completes the log entry of this apply. A log whose events are out of order cannot be read from
   * a version on, and is restarted.
   */
  #endAt(
    version: string,
    collection: CollectionRow,
    changed: readonly ApiObject[],
    at: number,
  ): void {
    const { eventLogs } = this.#tables
    const applied = changed.filter((object) => !isPast(object.resourceVersion, collection.version))
    const versions = applied.map(({ resourceVersion }) => resourceVersion)
    if (!isAscending([collection.version, ...versions])) eventLogs.restart(collection, version)
    else if (versions.length > 0) eventLogs.added(collection, at)
  }
}

/** The previous states of the objects of events, where they can be read. */
class Previous {
  readonly #objects: Objects
  readonly #scope: ScopeKey
  readonly #positions: number[] = []
  readonly #held: ApiObject[] = []
  readonly #damaged: DamagedObject[] = []

  constructor(objects: Objects, scope: ScopeKey) {
    this.#objects = objects
    this.#scope = scope
  }

  note(position: number, member: ObjectRow): void {
    const object = this.#objects.read(this.#scope, member)
    if (object) {
      this.#positions.push(position)
      this.#held.push(object)
      return
    }
    const { id, namespace, name, resourceVersion } = member
    this.#damaged.push({ id, namespace, name, resourceVersion })
  }

  all(): Displaced {
    return { positions: this.#positions, objects: pack(this.#held), damaged: this.#damaged }
  }
}

/** Whether the collection is at the watch's version or newer, and complete. */
const isFollowedBy = ({ since }: Apply, { whole, version }: CollectionRow): boolean =>
  whole && !isNewer(since, version)

const isAscending = (versions: readonly string[]): boolean =>
  versions.every((version, at) => at === 0 || isNewer(version, versions[at - 1] ?? ''))
