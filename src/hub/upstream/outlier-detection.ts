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
