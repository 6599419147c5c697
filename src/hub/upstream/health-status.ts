/** The outcome of one probe. */
export type ProbeResult = 'healthy' | 'unready' | 'unhealthy'

export type HealthStatus = 'unknown' | ProbeResult

/** How many probes in a row change a health status. */
export interface HealthThresholds {
  /** How many have to fail before a healthy upstream is unhealthy. */
  readonly failedRetry: number
  /** How many have to succeed before an unhealthy one is healthy. */
  readonly healthyThreshold: number
}

/** The better ones are higher. */
const rank: Readonly<Record<ProbeResult, number>> = { unhealthy: 0, unready: 1, healthy: 2 }

/**
 * The health status of an upstream, from the results of its probes:
 *
 * - unknown -> healthy, unready or unhealthy: by the first probe
 * - any -> a worse one: by `failedRetry` probes in a row with a worse result
 * - any -> a better one: by `healthyThreshold` probes in a row with a better result
 *
 * Where the results of the row differ, the status changes to the nearest of them.
 */
export class Hysteresis {
  #status: HealthStatus = 'unknown'
  /** Probes in a row with a better (positive) or worse (negative) result than the status. */
  #streak = 0
  /** Of the results of the streak, the one nearest to the status. */
  #nearest: ProbeResult = 'unhealthy'

  get status(): HealthStatus {
    return this.#status
  }

  /** Counts one probe; returns the new status where it changes. */
  count(
    result: ProbeResult,
    { failedRetry, healthyThreshold }: HealthThresholds,
  ): ProbeResult | undefined {
    if (this.#status === 'unknown') return this.#change(result)
    const step = rank[result] - rank[this.#status]
    if (step === 0 || step > 0 !== this.#streak > 0) this.#streak = 0
    if (step === 0) return undefined
    const nearer = Math.abs(step) < Math.abs(rank[this.#nearest] - rank[this.#status])
    if (this.#streak === 0 || nearer) this.#nearest = result
    this.#streak += Math.sign(step)
    const enough = this.#streak <= -failedRetry || this.#streak >= healthyThreshold
    return enough ? this.#change(this.#nearest) : undefined
  }

  #change(status: ProbeResult): ProbeResult {
    this.#status = status
    this.#streak = 0
    return status
  }
}
