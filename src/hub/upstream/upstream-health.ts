import { elapsed, jitter } from '../../base/clock.ts'

export interface OutlierRules {
  /** How long the first ejection lasts; each further one lasts twice as long as the one before. */
  readonly ejectMs: number
  /** How long an upstream that has recovered takes until it carries its whole share again. */
  readonly slowStartMs: number
}

/** So many consecutive failures eject. */
const consecutiveFailures = 5

/** So many recent outcomes are kept; half of them failures eject as well. */
const recentCount = 20

/**
 * An ejection lasts at most this many times as long as the first. After the same time without an
 * ejection the next one is as short as the first.
 */
const maxBackoff = 30

/**
 * Outlier detection and slow start of one upstream, as in Envoy. An upstream at which requests fail
 * is ejected for a while even if its probes succeed: a gateway may have lost its backends, a disk
 * may be full. Requests that were in flight together and fail together count as one failure;
 * outcomes during an ejection do not count.
 */
export class OutlierDetector {
  readonly #rules: OutlierRules
  readonly #onEjected: (forMs: number) => void
  #recent: boolean[] = []
  #failedAt = -Infinity
  #ejections = 0
  #until = -Infinity
  #warmFrom = -Infinity

  constructor(rules: OutlierRules, onEjected: (forMs: number) => void) {
    this.#rules = rules
    this.#onEjected = onEjected
  }

  get ejected(): boolean {
    return elapsed() < this.#until
  }

  /** Time left of an ejection, or 0. */
  get ejectedForMs(): number {
    return Math.max(0, this.#until - elapsed())
  }

  /** See `LoadBalancedHost`. */
  get slowStartWeight(): number {
    const since = elapsed() - this.#warmFrom
    return since >= this.#rules.slowStartMs ? 1 : Math.max(0, since / this.#rules.slowStartMs)
  }

  answered(): void {
    this.#note(true)
  }

  /** A request sent at `began`, by the clock of `elapsed`, had no answer. */
  failed(began: number): void {
    if (began < this.#failedAt) return
    this.#failedAt = elapsed()
    this.#note(false)
    const failures = this.#recent.filter((good) => !good).length
    const row = this.#recent.length - 1 - this.#recent.lastIndexOf(true)
    if (row >= consecutiveFailures || failures >= recentCount / 2) this.#eject()
  }

  #note(good: boolean): void {
    if (this.ejected) return
    this.#recent.push(good)
    if (this.#recent.length > recentCount) this.#recent.shift()
  }

  #eject(): void {
    const { ejectMs } = this.#rules
    const most = ejectMs * maxBackoff
    if (elapsed() - this.#until > most) this.#ejections = 0
    // At random, so that not all nodes return at once.
    const forMs = Math.min(ejectMs * 2 ** this.#ejections, most) * jitter(0.9, 1.1)
    this.#ejections++
    this.#recent = []
    this.#until = elapsed() + forMs
    this.#warmFrom = this.#until
    this.#onEjected(forMs)
  }

  /** The upstream has recovered: earlier failures belong to the outage and no longer count. */
  begin(): void {
    this.#recent = []
    this.#until = Math.min(this.#until, elapsed())
    this.#warmFrom = elapsed()
  }
}

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
