import type { EventEmitter } from 'node:events'
import { elapsed, every } from '../../base/clock.ts'
import type { RequestActivity } from './connection-limit.ts'

/** The slowest client that has not stalled, in bytes a second: clients are on this host. */
const slowestBytesPerSecond = 128 * 1024

/** How many times answers are looked at within the time that one may stall. */
const checksPerTimeout = 4

/** An answer, from when its request began until `stream` closes. */
export interface TrackedAnswer {
  readonly stream: EventEmitter
  readonly activity: RequestActivity
  /**
   * How long the client may take nothing where a caller is proven on its connection; where none is,
   * see `StalledAnswers`.
   */
  readonly patienceMs: number
  /** Bytes that wait for the client now. */
  readonly waiting: () => number
  /** Bytes of the request's body that nobody has read yet. */
  readonly unread: () => number
  /** Ends an answer that has stalled. */
  readonly cut: () => void
}

interface AnswerState extends TrackedAnswer {
  taken: boolean
  /** When it was last seen to have nothing waiting, or to have taken something. */
  since: number
}

/**
 * The answers under way on the connections of one listener; cuts those that have stalled because
 * the client takes nothing. Each is judged by itself: a client that answers pings, or reads one
 * stream, may have abandoned another. Where no caller is proven on the connection, taking a little
 * does not help: what waits has to go within `unprovenMs`.
 */
export class StalledAnswers implements Disposable {
  readonly #unprovenMs: number
  readonly #open = new Set<AnswerState>()
  readonly #timer: Disposable

  constructor(unprovenMs: number) {
    this.#unprovenMs = unprovenMs
    this.#timer = every(this.#unprovenMs / checksPerTimeout, () => this.#check())
  }

  /**
   * Watches an answer until it closes. The function returned is to be called whenever the client
   * has taken something.
   */
  add(answering: TrackedAnswer): () => void {
    const taking = { ...answering, taken: false, since: elapsed() }
    this.#open.add(taking)
    answering.stream.once('close', () => this.#open.delete(taking))
    return () => void (taking.taken = true)
  }

  #check(): void {
    const at = elapsed()
    for (const taking of this.#open) {
      const waiting = taking.waiting()
      const { activity } = taking
      activity.setWaitingBytes(waiting + taking.unread())
      const isProven = activity.onProvenConnection
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
