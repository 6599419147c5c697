import { limits } from './limits.ts'
import { maxBy, ConnectionRanks, type ConnectionRank, type RankedConnection } from './ranks.ts'

/** The memory that a connection accounts for. */
export interface AccountedConnection extends RankedConnection {
  /** Closes it. */
  shed(): void
}

/** The share of the limit for connections on which no caller is proven. */
export const unprovenShare = 1 / 2

/**
 * Bounds the memory that connections of all listeners make the hub hold, by an estimate: to
 * `limitBytes`, and to half of that for connections on which no caller is proven. Over the limit it
 * closes a connection of the owner that holds most: an unproven one if there is any, otherwise a
 * caller's. It closes the largest one; but if no unproven one is larger than that of a new client
 * can be, the oldest, so that idle connections leave new ones the time to prove their caller. The
 * node's memory is not bounded here.
 */
export class ConnectionMemory {
  readonly #limit: number
  readonly #ranks = new ConnectionRanks<AccountedConnection>()

  constructor(limitBytes: number) {
    this.#limit = limitBytes
  }

  /** The estimated bytes of connections of this rank. */
  heldBytes(rank: ConnectionRank): number {
    return this.#ranks[rank].bytes
  }

  add(one: AccountedConnection): void {
    this.#ranks[one.rank].add(one)
    this.#shedOverLimit()
  }

  remove(one: AccountedConnection): void {
    this.#ranks[one.rank].remove(one)
  }

  /** Adds to what a connection holds. */
  addBytes(one: AccountedConnection, bytes: number): void {
    this.#ranks[one.rank].addBytes(one.owner, bytes)
    if (bytes > 0) this.#shedOverLimit()
  }

  #shedOverLimit(): void {
    const { unproven, caller } = this.#ranks
    while (
      unproven.bytes + caller.bytes > this.#limit ||
      unproven.bytes > this.#limit * unprovenShare
    ) {
      const group = unproven.withMostBytes() ?? caller.withMostBytes()
      const heaviest = group && maxBy(group.members, ({ bytes }) => bytes)
      if (!heaviest) return
      const begins = heaviest.rank === 'unproven' && heaviest.bytes <= limits.beginningBytes
      const [oldest = heaviest] = group.members
      const leaving = begins ? oldest : heaviest
      this.remove(leaving)
      leaving.shed()
    }
  }
}
