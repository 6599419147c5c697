import { isProven, type Exchange } from '../../http/exchange/exchange.ts'

/**
 * The priority levels of requests, as in API Priority and Fairness, the lowest first: unproven
 * callers, other programs of the node, the node itself (its kubelet, and root's programs without a
 * token).
 */
export const priorityLevels = ['unproven', 'workload', 'node'] as const

export type PriorityLevel = (typeof priorityLevels)[number]

export function priorityLevelOf(exchange: Pick<Exchange, 'claim'>): PriorityLevel {
  if (exchange.claim === undefined) return 'node'
  return isProven(exchange) ? 'workload' : 'unproven'
}

/** How much of a total a level may take together with the levels below it; at least one. */
const limits: Readonly<Record<PriorityLevel, (total: number) => number>> = {
  unproven: (total) => Math.max(1, Math.floor(total / 10)),
  workload: (total) => Math.max(1, total - Math.max(1, Math.floor(total / 4))),
  node: (total) => total,
}

/**
 * A total of seats, or of bytes, that the priority levels share. A level may use the unused share
 * of the levels above it, up to its limit, and a higher level all of the rest: so a quarter is
 * reserved for the node, and unproven callers have a tenth at most. The excess of a level counts
 * against that level, never against a higher one.
 */
export class PriorityShares {
  readonly #total: () => number
  readonly #taken: Record<PriorityLevel, number> = { unproven: 0, workload: 0, node: 0 }
  #most = 0

  constructor(total: () => number) {
    this.#total = total
  }

  /** The most that a level takes together with the levels below it. */
  limit(level: PriorityLevel): number {
    return limits[level](this.#total())
  }

  taken(level: PriorityLevel): number {
    return this.#taken[level]
  }

  get allTaken(): number {
    return this.#taken.unproven + this.#taken.workload + this.#taken.node
  }

  /** The most that was taken at a time since the last call. */
  mostTaken(): number {
    const most = this.#most
    this.#most = this.allTaken
    return most
  }

  /** Whether a level may take so much more. */
  fits(level: PriorityLevel, amount = 1): boolean {
    return this.#exceeded(priorityLevels.indexOf(level), amount) === undefined
  }

  /**
   * The lowest level that holds more than its limit, together with the levels below it;
   * `undefined`: none does.
   */
  get overfull(): PriorityLevel | undefined {
    return this.#exceeded(0, 0)
  }

  /** The first level from `from` upward whose limit would be exceeded by `more`. */
  #exceeded(from: number, more: number): PriorityLevel | undefined {
    let used = 0
    const total = this.#total()
    let at = 0
    for (const level of priorityLevels) {
      const limit = limits[level](total)
      used += this.#taken[level]
      if (at++ >= from && used + more > limit) return level
      used = Math.min(used, limit)
    }
    return undefined
  }

  /**
   * Takes so much more at a level, or with a negative amount gives back, whether it fits or not.
   */
  take(level: PriorityLevel, amount: number): void {
    this.#taken[level] += amount
    this.#most = Math.max(this.#most, this.allTaken)
  }
}
