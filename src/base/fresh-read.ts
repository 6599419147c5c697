import { turn } from './clock.ts'

/**
 * Reads something costly for many at once: each is given a read that began no earlier than it
 * asked, and those who ask while one is under way share the one after it. That begins in the next
 * turn: so do those share it who ask because of what the one before has found, and wait for no
 * third one while others keep asking.
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
