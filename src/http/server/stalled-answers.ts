import { elapsed, every } from '../../base/clock.ts'
import { OpenList } from '../../base/open-list.ts'

/** The slowest client that counts as reading, in bytes per second: clients are on this host. */
const slowestBytesPerSecond = 128 * 1024

/** How many times in its patience each answer is checked. */
const checksPerTimeout = 24

/** An answer in flight over HTTP/2. */
export interface TrackedAnswer {
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
 * Tracks the answers in flight over HTTP/2 on the connections of one listener, and cuts those that
 * stall because the client takes nothing. It decides on each answer separately: a client that
 * answers pings, or reads one stream, may have abandoned another. Over HTTP/1.1 the timeout of the
 * connection does that, unless the client goes on sending.
 */
export class StalledAnswers implements Disposable {
  readonly #patienceMs: number
  readonly #open = new OpenList<TrackedAnswer>()
  readonly #timer: Disposable

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs
    this.#timer = every(patienceMs / checksPerTimeout, () => this.#check())
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
      if (waiting === 0 || taking.taken) {
        taking.taken = false
        taking.since = at
      } else if (at - taking.since >= this.#patienceMs + (waiting / slowestBytesPerSecond) * 1000) {
        this.#open.delete(taking)
        taking.cut()
      }
    }
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]()
  }
}
