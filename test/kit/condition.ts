import { inTime, type Patience } from './until.ts'

/**
 * Lets tests wait for a condition, which is checked at each change. A wait ends after a time limit
 * with an error that quotes the condition.
 */
export class Condition {
  readonly #patience: Patience
  #waiting: (() => void)[] = []

  constructor(patience: Patience = {}) {
    this.#patience = patience
  }

  /** Called after each change. */
  changed(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const look of waiting) look()
  }

  /** Resolves as soon as `holds` returns true. */
  async until(holds: () => boolean): Promise<void> {
    await this.#met(holds, () => holds() || undefined)
  }

  /** Resolves with the result of `look`, as soon as it is defined. */
  async seen<T>(look: () => T | undefined): Promise<T> {
    return this.#met(look, look)
  }

  #met<T>(meant: () => unknown, look: () => T | undefined): Promise<T> {
    const what = String(meant).replaceAll(/\s+/g, ' ')
    return inTime(what, this.#look(look), this.#patience)
  }

  async #look<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const seen = look()
      if (seen !== undefined) return seen
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }
}
