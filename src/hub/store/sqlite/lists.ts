import { isNewer } from '../../../api/kube/resource-version.ts'
import type { Head } from './heads.ts'
import type { Named } from './held.ts'
import { unpack, type Discard, type Flip, type Stage } from './messages.ts'
import { isSelective } from './out-of-date.ts'
import type { Tables } from './tables.ts'
import { following, isAtLeast } from './versions.ts'

/** Carries out what a list brings: staged as it comes in, then made what the collection holds. */
export class Lists {
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

  flip(flip: Flip): void {
    const { objects, heads, outOfDate } = this.#tables
    const scope = objects.scope(flip.collection.scope)
    const before = heads.find(flip.collection)
    const id = heads.listed(flip)
    const isLess = this.#remove(scope, id, flip)
    const isOther = this.#join(scope, id, flip)
    outOfDate.listed(scope, id, flip.version)
    if (before && isNewer(before.version, flip.version)) outOfDate.wentBack(scope)
    const isSame = before !== undefined && !isLess && !isOther
    this.#toRing(flip, { id, scope }, isSame ? before : undefined)
  }

  /** What the list has no longer. Returns whether there was any. */
  #remove(scope: number, collection: number, flip: Flip): boolean {
    let changed = false
    for (const [namespace, name] of flip.removed) {
      changed = this.#removeOne(scope, collection, flip, { namespace, name }) || changed
    }
    return changed
  }

  #removeOne(scope: number, collection: number, flip: Flip, named: Named): boolean {
    const { members, singles, outOfDate } = this.#tables
    const member = members.find(collection, named)
    if (member) members.remove(scope, collection, member)
    singles.remove(scope, named, flip.listed)
    if (member && isSelective(flip.collection) && isAtLeast(flip.listed, member.resourceVersion)) {
      outOfDate.unselected(scope, named, following(member.resourceVersion))
    }
    outOfDate.released(scope, named)
    return member !== undefined
  }

  /** What was staged. Returns whether any member is another than before. */
  #join(scope: number, collection: number, { replacement, overtaken }: Flip): boolean {
    const { members, staged } = this.#tables
    for (const [namespace, name] of overtaken) staged.drop(scope, replacement, { namespace, name })
    const changed = members.join(scope, collection, replacement)
    staged.joined(scope, replacement)
    return changed
  }

  /**
   * `same`: what the collection was before, where it held just this. What happened in between is
   * not known otherwise.
   */
  #toRing(flip: Flip, of: Pick<Head, 'id' | 'scope'>, same: Head | undefined): void {
    const { rings } = this.#tables
    if (!same?.whole || flip.afresh || !isAtLeast(flip.version, same.version)) {
      rings.restart(of, flip.version)
    } else if (flip.version !== same.version) {
      rings.unchanged(same, flip.version)
    }
  }
}
