import { turn } from './clock.ts'

/**
 * Shares an expensive read, or write, among callers: each gets one that began no earlier than its
 * call, and callers during one share the one after it. That begins in the next turn of the event
 * loop, so that callers who react to the previous result share it too and wait for no third one.
 */
export class FreshRead<T> {
  readonly #read: () => Promise<T>
  #running: Promise<T> | undefined
  #next: Promise<T> | undefined

  constructor(read: () => Promise<T>) {
    this.#read = read
  }

  get(): Promise<T> {
    if (this.#next) return this.#next
    if (this.#running === undefined) return this.#start()
    this.#next = this.#running
      .catch(() => undefined)
      .then(turn)
      .then(() => {
        this.#next = undefined
        return this.#start()
      })
    return this.#next
  }

  #start(): Promise<T> {
    const running = this.#read().finally(() => {
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
    return running
  }
}
