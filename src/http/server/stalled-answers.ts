import { elapsed, every } from '../../base/clock.ts'
import type { RequestActivity } from './connection-limit.ts'
import { OpenList } from '../../base/open-list.ts'
import { limits } from './limits.ts'

/** The slowest client that counts as reading, in bytes per second: clients are on this host. */
const slowestBytesPerSecond = 128 * 1024

/** An answer in flight. */
export interface TrackedAnswer {
  readonly activity: RequestActivity
  /**
   * How long the client may take nothing where a caller is proven on its connection; otherwise see
   * `StalledAnswers`.
   */
  readonly patienceMs: number
  /** The bytes that wait for the client now. */
  waiting(): number
  /** Aborts a stalled answer. */
  cut(): void
  /** Has to be set whenever the client has taken something. */
  taken: boolean
  /** When it began, last had nothing waiting, or had made progress. */
  since: number
}

/**
 * Tracks the answers in flight on the connections of one listener, and cuts those that stall
 * because the client takes nothing. It decides on each answer separately: a client that answers
 * pings, or reads one stream, may have abandoned another. Where no caller is proven on the
 * connection, partial progress does not count: what waits has to be sent within `unprovenMs`.
 */
export class StalledAnswers implements Disposable {
  readonly #unprovenMs: number
  readonly #open = new OpenList<TrackedAnswer>()
  readonly #timer: Disposable

  constructor(unprovenMs: number) {
    this.#unprovenMs = unprovenMs
    this.#timer = every(this.#unprovenMs / limits.checksPerTimeout, () => this.#check())
  }

  /** To be called when a request begins. */
  add(answer: TrackedAnswer): void {
    this.#open.add(answer)
  }

  /** To be called when its answer is over. */
  delete(answer: TrackedAnswer): void {
    this.#open.delete(answer)
  }

  #check(): void {
    const at = elapsed()
    for (const taking of this.#open) {
      const waiting = taking.waiting()
      const isProven = taking.activity.onProvenConnection
      const patienceMs = isProven
        ? taking.patienceMs + (waiting / slowestBytesPerSecond) * 1000
        : this.#unprovenMs
      if (waiting === 0 || (taking.taken && isProven)) {
        taking.taken = false
        taking.since = at
      } else if (at - taking.since >= patienceMs) {
        this.#open.delete(taking)
        taking.cut()
      }
    }
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]()
  }
}
