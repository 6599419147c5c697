import { limits } from './limits.ts'
import { maxBy, ConnectionRanks, type ConnectionRank, type RankedConnection } from './ranks.ts'

/** A connection as far as its memory goes. */
export interface AccountedConnection extends RankedConnection {
  /** Closes it. */
  shed(): void
}

/** What connections on which no caller is proven may take of the limit. */
export const unprovenShare = 1 / 2

/**
 * Bounds what the connections of all listeners make the hub hold, by an estimate: to `limitBytes`,
 * and to half of that for those whose callers are not proven. Beyond it a connection of the owner
 * that holds most is closed: of those not proven as long as there are any, then of callers. It is
 * the heaviest one; but where none of those not proven is heavier than a client can be that begins,
 * the oldest, so that connections which do nothing leave it the time to prove its caller. What the
 * node holds is not bounded here.
 */
export class ConnectionMemory {
  readonly #limit: number
  readonly #ranks = new ConnectionRanks<AccountedConnection>()

  constructor(limitBytes: number) {
    this.#limit = limitBytes
  }

  /** Estimated bytes that connections of the rank hold. */
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

  /** To be called with what a connection holds more than before. */
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
