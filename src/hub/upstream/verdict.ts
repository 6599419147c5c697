/** What one probe found. */
export type Finding = 'healthy' | 'unready' | 'unhealthy'

export type Verdict = 'unknown' | Finding

/** How many probes in a row change a verdict. */
export interface Hysteresis {
  /** How many have to fail before a healthy upstream is unhealthy. */
  readonly failedRetry: number
  /** How many have to succeed before an unhealthy one is healthy. */
  readonly healthyThreshold: number
}

/** The better ones are higher. */
const rank: Readonly<Record<Finding, number>> = { unhealthy: 0, unready: 1, healthy: 2 }

/**
 * What probes found, made into a verdict.
 *
 *   unknown -> healthy | unready | unhealthy     by the first probe any -> a worse one
 *   by `failedRetry` probes in a row that found it worse any -> a better one
 *   by `healthyThreshold` in a row that found it better
 *
 * Where the probes of a row differ, the verdict changes to the nearest of what they found.
 */
export class Judgement {
  #verdict: Verdict = 'unknown'
  /**
   * Probes in a row that found it better (positive) or worse (negative) than the verdict, and the
   * nearest of what they found.
   */
  #streak = 0
  #nearest: Finding = 'unhealthy'

  get verdict(): Verdict {
    return this.#verdict
  }

  /** Counts one probe. What the verdict is from now on, where it is another. */
  count(found: Finding, { failedRetry, healthyThreshold }: Hysteresis): Finding | undefined {
    if (this.#verdict === 'unknown') return this.#turn(found)
    const step = rank[found] - rank[this.#verdict]
    if (step === 0 || step > 0 !== this.#streak > 0) this.#streak = 0
    if (step === 0) return undefined
    const nearer = Math.abs(step) < Math.abs(rank[this.#nearest] - rank[this.#verdict])
    if (this.#streak === 0 || nearer) this.#nearest = found
    this.#streak += Math.sign(step)
    const enough = this.#streak <= -failedRetry || this.#streak >= healthyThreshold
    return enough ? this.#turn(this.#nearest) : undefined
  }

  #turn(verdict: Finding): Finding {
    this.#verdict = verdict
    this.#streak = 0
    return verdict
  }
}
