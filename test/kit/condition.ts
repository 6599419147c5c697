import { inTime, type Patience } from './until.ts'

/**
 * Lets tests wait until something holds, looking whenever something has changed. What never comes
 * to hold ends the wait with an error that quotes it.
 */
export class Condition {
  readonly #patience: Patience
  #waiting: (() => void)[] = []

  constructor(patience: Patience = {}) {
    this.#patience = patience
  }

  /** To be called when something has changed that somebody may wait for. */
  changed(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const look of waiting) look()
  }

  /** Resolves as soon as `holds` says so. */
  async until(holds: () => boolean): Promise<void> {
    await this.#met(holds, () => holds() || undefined)
  }

  /** Resolves with what `look` sees, as soon as that is something. */
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
