import { randomInt } from 'node:crypto'

/** Draws that the same seed repeats (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A whole number from 0 to 2^32 - 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    return limit <= 1 ? 0 : this.next() % limit
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0
  }

  of<T>(choices: readonly T[]): T {
    const chosen = choices[this.below(choices.length)]
    if (chosen === undefined) throw new Error('nothing to choose from')
    return chosen
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)))
  }
}

/** The draws of one round: a round can be repeated without those before it. */
export const roundOf = (seed: number, round: number): Random => {
  const mixed = new Random(seed ^ Math.imul(round + 1, 0x9e3779b1))
  return new Random(mixed.next())
}

/**
 * The seed of a job: the one that was named, or else one that is drawn, so that no two runs try the
 * same. The job prints it. A round is one of a seed, which has to be named with it.
 */
export function seedOf({
  seed,
  round,
}: {
  readonly seed?: string
  readonly round?: string
}): number {
  if (seed !== undefined) return Number(seed)
  if (round !== undefined) throw new Error('--round is one of a seed: name it with --seed')
  return randomInt(2 ** 31)
}
