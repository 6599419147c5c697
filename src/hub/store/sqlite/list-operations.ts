import { isNewer } from '../../../api/kube/resource-version.ts'
import type { CollectionRow } from './collection-rows.ts'
import type { ObjectName } from './object-row.ts'
import { unpack, type Discard, type CommitList, type Stage } from './messages.ts'
import { isSelective } from '../../../api/kube/selectors.ts'
import type { Tables } from './tables.ts'
import { nextVersion, isAtLeast } from './versions.ts'

/** Stages the objects of a list, and makes them the members of its collection. */
export class ListOperations {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  stage({ collection, replacement, objects }: Stage): void {
    for (const object of unpack(objects)) {
      this.#tables.staged.add(collection.scope, replacement, object)
    }
  }

  discard({ collection, replacement }: Discard): void {
    const scope = this.#tables.objects.knownScope(collection.scope)
    if (scope !== undefined) this.#tables.staged.discard(scope, replacement)
  }

  commit(commitList: CommitList): void {
    const { objects, collections, tombstones } = this.#tables
    const scope = objects.scope(commitList.collection.scope)
    const before = collections.find(commitList.collection)
    const id = collections.listed(commitList)
    const isLess = this.#remove(scope, id, commitList)
    const isOther = this.#join(scope, id, commitList)
    tombstones.listed(scope, id, commitList.version)
    if (before && isNewer(before.version, commitList.version)) tombstones.versionsReset(scope)
    const isSame = before !== undefined && !isLess && !isOther
    this.#logList(commitList, { id, scope }, isSame ? before : undefined)
  }

  /** Removes the members that the list does not have. Returns whether there were any. */
  #remove(scope: number, collection: number, commitList: CommitList): boolean {
    let changed = false
    for (const [namespace, name] of commitList.removed) {
      changed = this.#removeOne(scope, collection, commitList, { namespace, name }) || changed
    }
    return changed
  }

  #removeOne(
    scope: number,
    collection: number,
    commitList: CommitList,
    named: ObjectName,
  ): boolean {
    const { members, records, tombstones } = this.#tables
    const member = members.find(collection, named)
    if (member) members.remove(scope, collection, member)
    records.remove(scope, named, commitList.listed)
    if (
      member &&
      isSelective(commitList.collection) &&
      isAtLeast(commitList.listed, member.resourceVersion)
    ) {
      tombstones.unselected(scope, named, nextVersion(member.resourceVersion))
    }
    tombstones.released(scope, named)
    return member !== undefined
  }

  /** Makes the staged objects members. Returns whether any member has changed. */
  #join(scope: number, collection: number, { replacement, overtaken }: CommitList): boolean {
    const { members, staged } = this.#tables
    for (const [namespace, name] of overtaken) staged.drop(scope, replacement, { namespace, name })
    const changed = members.join(scope, collection, replacement)
    staged.joined(scope, replacement)
    return changed
  }

  /**
   * `same`: the collection's row before, if the list brought no change. Otherwise the events that
   * led to it are unknown.
   */
  #logList(
    commitList: CommitList,
    of: Pick<CollectionRow, 'id' | 'scope'>,
    same: CollectionRow | undefined,
  ): void {
    const { eventLogs } = this.#tables
    if (
      !same?.whole ||
      commitList.afterMissedWrite ||
      !isAtLeast(commitList.version, same.version)
    ) {
      eventLogs.restart(of, commitList.version)
    } else if (commitList.version !== same.version) {
      eventLogs.unchanged(same, commitList.version)
    }
  }
}
