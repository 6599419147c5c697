import { elapsed, jitter } from '../../base/clock.ts'

export interface TrackRules {
  /** How long the first ejection lasts; each further one lasts twice as long as the one before. */
  readonly ejectMs: number
  /** How long an upstream that is back takes to carry its whole share again. */
  readonly warmUpMs: number
}

/** How many failures in a row eject. */
const inARow = 5

/** Of how many recent outcomes half have to be failures to eject as well. */
const recentCount = 20

/**
 * An ejection lasts at most this many times as long as the first; after as long without one, the
 * next counts as a first again.
 */
const longest = 30

/**
 * How requests have fared at one upstream. An upstream at which they fail is ejected for a while
 * even if its probes succeed: a gateway may have lost its backends, a disk may be full. Requests
 * that were under way together and fail together count as one failure; outcomes during an ejection
 * do not count.
 */
export class TrackRecord {
  readonly #rules: TrackRules
  readonly #onEjected: (forMs: number) => void
  #recent: boolean[] = []
  #failedAt = -Infinity
  #ejections = 0
  #until = -Infinity
  #warmFrom = -Infinity

  constructor(rules: TrackRules, onEjected: (forMs: number) => void) {
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

  /** See `Candidate`. */
  get warmth(): number {
    const since = elapsed() - this.#warmFrom
    return since >= this.#rules.warmUpMs ? 1 : Math.max(0, since / this.#rules.warmUpMs)
  }

  answered(): void {
    this.#note(true)
  }

  /** A request that went out at `began`, by the clock of `elapsed`, was not answered. */
  failed(began: number): void {
    if (began < this.#failedAt) return
    this.#failedAt = elapsed()
    this.#note(false)
    const failures = this.#recent.filter((good) => !good).length
    const row = this.#recent.length - 1 - this.#recent.lastIndexOf(true)
    if (row >= inARow || failures >= recentCount / 2) this.#eject()
  }

  #note(good: boolean): void {
    if (this.ejected) return
    this.#recent.push(good)
    if (this.#recent.length > recentCount) this.#recent.shift()
  }

  #eject(): void {
    const { ejectMs } = this.#rules
    const most = ejectMs * longest
    if (elapsed() - this.#until > most) this.#ejections = 0
    // Drawn at random, so that not all nodes come back at once.
    const forMs = Math.min(ejectMs * 2 ** this.#ejections, most) * jitter(0.9, 1.1)
    this.#ejections++
    this.#recent = []
    this.#until = elapsed() + forMs
    this.#warmFrom = this.#until
    this.#onEjected(forMs)
  }

  /**
   * The upstream was gone and is back: earlier failures belong to that outage and are forgotten.
   */
  begin(): void {
    this.#recent = []
    this.#until = Math.min(this.#until, elapsed())
    this.#warmFrom = elapsed()
  }
}
