import type { EventEmitter } from 'node:events'
import { elapsed, every } from '../../base/clock.ts'
import type { Activity } from './connection-limit.ts'

/** The slowest client that has not stalled, in bytes a second: clients are on this host. */
const slowest = 128 * 1024

/** How many times answers are looked at within the time that one may stall. */
const looksInTime = 4

/** An answer, from when its request began until `stream` closes. */
export interface Answering {
  readonly stream: EventEmitter
  readonly activity: Activity
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

interface Taking extends Answering {
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
  readonly #open = new Set<Taking>()
  readonly #looking: Disposable

  constructor(unprovenMs: number) {
    this.#unprovenMs = unprovenMs
    this.#looking = every(this.#unprovenMs / looksInTime, () => this.#look())
  }

  /**
   * Watches an answer until it closes. The function returned is to be called whenever the client
   * has taken something.
   */
  add(answering: Answering): () => void {
    const taking = { ...answering, taken: false, since: elapsed() }
    this.#open.add(taking)
    answering.stream.once('close', () => this.#open.delete(taking))
    return () => void (taking.taken = true)
  }

  #look(): void {
    const at = elapsed()
    for (const taking of this.#open) {
      const waiting = taking.waiting()
      const { activity } = taking
      activity.waits(waiting + taking.unread())
      const isProven = activity.onProvenConnection
      const patienceMs = isProven
        ? taking.patienceMs + (waiting / slowest) * 1000
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
    this.#looking[Symbol.dispose]()
  }
}
