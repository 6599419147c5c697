/**
 * Something that happens again and again, and those who are to hear of it. It is made before the
 * parts that announce it and the parts that listen, so that none of these has to know another.
 */
export class Broadcast<Said extends readonly unknown[] = []> {
  readonly #listeners = new Set<(...said: Said) => void>()

  /**
   * Calls `listener` each time, after those that listen already, until disposed of; one that is
   * given twice is called twice.
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
