/** The proof of a connection's client: none, a caller with a token, or the node itself. */
export type ConnectionRank = 'unproven' | 'caller' | 'node'

/** The facts of a connection that ranking needs. */
export interface RankedConnection {
  readonly rank: ConnectionRank
  /** The owner: a network while nothing is proven, then an identity. */
  readonly owner: string
  /** The estimated memory of the connection. */
  readonly bytes: number
}

/** The connections of one owner, in the order in which it got them. */
interface OwnerGroup<Of> {
  readonly members: ReadonlySet<Of>
  readonly bytes: number
}

interface MutableOwnerGroup<Of> extends OwnerGroup<Of> {
  readonly members: Set<Of>
  bytes: number
}

/** The connections of one rank by owner, counted as they open, grow and close. */
class OwnerGroups<Of extends RankedConnection> {
  readonly #groups = new Map<string, MutableOwnerGroup<Of>>()
  #size = 0
  #bytes = 0

  get size(): number {
    return this.#size
  }

  get bytes(): number {
    return this.#bytes
  }

  add(one: Of): void {
    const known = this.#groups.get(one.owner)
    const group = known ?? { members: new Set<Of>(), bytes: 0 }
    if (!known) this.#groups.set(one.owner, group)
    group.members.add(one)
    this.#size++
    this.addBytes(one.owner, one.bytes)
  }

  remove(one: Of): void {
    const group = this.#groups.get(one.owner)
    if (!group?.members.delete(one)) return
    this.#size--
    this.addBytes(one.owner, -one.bytes)
    if (group.members.size === 0) this.#groups.delete(one.owner)
  }

  /** Adds to what a connection of `owner` holds. */
  addBytes(owner: string, bytes: number): void {
    const group = this.#groups.get(owner)
    if (!group) return
    group.bytes += bytes
    this.#bytes += bytes
  }

  /** The owner with the most connections. */
  withMostConnections(): OwnerGroup<Of> | undefined {
    return maxBy(this.#groups.values(), ({ members }) => members.size)
  }

  /** The owner whose connections hold most memory. */
  withMostBytes(): OwnerGroup<Of> | undefined {
    return maxBy(this.#groups.values(), ({ bytes }) => bytes)
  }
}

/** The first of the largest; `undefined` where `all` is empty. */
export function maxBy<Of>(all: Iterable<Of>, size: (one: Of) => number): Of | undefined {
  let found: { readonly one: Of; readonly size: number } | undefined
  for (const one of all) {
    const its = size(one)
    if (found === undefined || its > found.size) found = { one, size: its }
  }
  return found?.one
}

/** Connections by rank. */
export class ConnectionRanks<Of extends RankedConnection> {
  readonly unproven = new OwnerGroups<Of>()
  readonly caller = new OwnerGroups<Of>()
  readonly node = new OwnerGroups<Of>()

  get size(): number {
    return this.unproven.size + this.caller.size + this.node.size
  }
}
