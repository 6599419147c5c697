import { after, elapsed, turn } from './clock.ts'

/** After a long read two thirds of the time are left to others. */
const restShare = 2

/**
 * Shares an expensive read among callers: each gets a read that began no earlier than its call, and
 * callers during a read share the one after it. That begins in the next turn of the event loop, so
 * that callers who react to the previous result share it too and wait for no third one.
 *
 * A read that took `longMs` or longer is followed by a rest of `restShare` times as long, so that a
 * flood of callers who make it long does not keep a processor busy. An urgent read ends the rest,
 * for all who wait.
 */
export class FreshRead<T> {
  readonly #read: () => Promise<T>
  readonly #longMs: number
  /** On the clock of `elapsed`. */
  #restsUntil = 0
  #endRest: (() => void) | undefined
  /** The next read is urgent. */
  #isUrgent = false
  #running: Promise<T> | undefined
  #next: Promise<T> | undefined

  constructor(read: () => Promise<T>, longMs = Infinity) {
    this.#read = read
    this.#longMs = longMs
  }

  get(isUrgent = false): Promise<T> {
    if (isUrgent) {
      this.#isUrgent = true
      this.#endRest?.()
    }
    if (this.#next) return this.#next
    const isAtRest = this.#restsUntil > elapsed() && !isUrgent
    if (this.#running === undefined && !isAtRest) return this.#start()
    this.#next = (this.#running ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.#rest())
      .then(() => {
        this.#next = undefined
        return this.#start()
      })
    return this.#next
  }

  #rest(): Promise<void> {
    const ms = this.#isUrgent ? 0 : this.#restsUntil - elapsed()
    if (ms <= 0) return turn()
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = after(ms, resolve)
    this.#endRest = resolve
    return promise.finally(() => {
      timer[Symbol.dispose]()
      this.#endRest = undefined
    })
  }

  #start(): Promise<T> {
    const began = elapsed()
    this.#isUrgent = false
    const running = this.#read().finally(() => {
      if (this.#running === running) this.#running = undefined
      const ended = elapsed()
      const took = ended - began
      if (took >= this.#longMs) this.#restsUntil = ended + restShare * took
    })
    this.#running = running
    return running
  }
}
