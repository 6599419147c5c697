import type { ObjectEvent } from '../../../api/codec/watch.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import type { Head } from './heads.ts'
import { isChange } from './held.ts'
import type { ScopeKey } from './address.ts'
import { pack, unpack, type Apply, type Damaged, type Displaced } from './messages.ts'
import type { Held, Objects } from './objects.ts'
import { isSelective } from './out-of-date.ts'
import type { Tables } from './tables.ts'
import { isPast, mayFollow, newest } from './versions.ts'

/** One event, and whom it meets. */
interface Met {
  readonly type: ObjectEvent['type']
  readonly object: ApiObject
  /**
   * Takes it in. Absent where it missed a write, or knew this before: then only what is recorded of
   * the single object follows.
   */
  readonly collection: Head | undefined
  /** What the collection holds of the object, whether it takes this in or not. */
  readonly member: Held | undefined
}

/** Carries out what a watch told of a collection. */
export class Events {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  apply(apply: Apply): Displaced | undefined {
    const { collection: address, types, confirmedAt } = apply
    const { heads, members, objects } = this.#tables
    const found = apply.whole ? heads.find(address) : undefined
    const collection = found && isFollowedBy(apply, found) ? found : undefined
    const told = unpack(apply.objects)
    const previous = apply.previous ? new Previous(objects, address.scope) : undefined
    told.forEach((object, position) => {
      const member = collection && members.find(collection.id, object)
      if (member) previous?.note(position, member)
      const isNews = collection !== undefined && !isPast(object.resourceVersion, collection.version)
      this.#tell(apply, {
        type: types[position] ?? 'MODIFIED',
        object,
        collection: isNews ? collection : undefined,
        member,
      })
    })
    if (collection) {
      const version = newest(collection.version, apply.version)
      heads.confirm(collection.id, address, version, confirmedAt)
      this.#endAt(version, collection, told, confirmedAt)
    }
    return previous?.all()
  }

  #tell(apply: Apply, met: Met): void {
    const { objects, rings } = this.#tables
    const { type, object, collection, member } = met
    // Its ring keeps the last state of what is gone, too.
    const held = collection && objects.acquire(apply.collection.scope, object)
    if (collection && held) rings.add(collection, type, held, member, apply.confirmedAt)
    if (type === 'DELETED') this.#deleted(apply, met)
    else this.#changed(apply, met, held)
  }

  #deleted({ collection: address }: Apply, { object, collection, member }: Met): void {
    const { objects, members, singles, outOfDate } = this.#tables
    const scope = objects.scope(address.scope)
    if (collection && member && mayFollow(object.resourceVersion, member.resourceVersion)) {
      members.remove(scope, collection.id, member)
    }
    singles.remove(scope, object, object.resourceVersion)
    if (isSelective(address)) outOfDate.unselected(scope, object, object.resourceVersion)
    outOfDate.released(scope, object)
  }

  #changed(
    { collection: address, confirmedAt }: Apply,
    { object, collection, member }: Met,
    acquired: Held | undefined,
  ): void {
    const { objects, members, singles, outOfDate } = this.#tables
    const scope = objects.scope(address.scope)
    const single = singles.find(scope, object)
    const joins = collection !== undefined && (!member || isChange(object, member))
    const moves = single !== undefined && isChange(object, single)
    if (joins || member?.resourceVersion === object.resourceVersion) outOfDate.told(scope, object)
    if (!joins && !moves) return
    const held = acquired ?? objects.acquire(address.scope, object)
    if (joins) members.set(scope, collection.id, held, member)
    if (moves) singles.move(scope, held, single, confirmedAt)
  }

  /**
   * After what was added to it. Events that do not come in their order cannot be told from a
   * version on.
   */
  #endAt(version: string, collection: Head, told: readonly ApiObject[], at: number): void {
    const { rings } = this.#tables
    const news = told.filter((object) => !isPast(object.resourceVersion, collection.version))
    const versions = news.map(({ resourceVersion }) => resourceVersion)
    if (!isAscending([collection.version, ...versions])) rings.restart(collection, version)
    else if (versions.length > 0) rings.added(collection, at)
  }
}

/** What a collection held of the objects that events are about, as far as it can be read. */
class Previous {
  readonly #objects: Objects
  readonly #scope: ScopeKey
  readonly #positions: number[] = []
  readonly #held: ApiObject[] = []
  readonly #damaged: Damaged[] = []

  constructor(objects: Objects, scope: ScopeKey) {
    this.#objects = objects
    this.#scope = scope
  }

  note(position: number, member: Held): void {
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

/** Whether the collection is where the watch takes it to be, or further, and missed nothing. */
const isFollowedBy = ({ since }: Apply, { whole, version }: Head): boolean =>
  whole && !isNewer(since, version)

const isAscending = (versions: readonly string[]): boolean =>
  versions.every((version, at) => at === 0 || isNewer(version, versions[at - 1] ?? ''))
