/**
 * An event source that is created before its emitters and listeners, so that neither has to know
 * the other.
 */
export class Broadcast<Said extends readonly unknown[] = []> {
  readonly #listeners = new Set<(...said: Said) => void>()

  /**
   * Calls `listener` for each event, after earlier listeners, until disposed. A listener that is
   * added twice is called twice.
   */
  listen(listener: (...said: Said) => void): Disposable {
    const own = (...said: Said): void => listener(...said)
    this.#listeners.add(own)
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) }
  }

  announce(...said: Said): void {
    for (const listener of this.#listeners) listener(...said)
  }
}
