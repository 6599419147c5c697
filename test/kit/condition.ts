/** Lets tests wait until something holds, looking whenever something has changed: no clock is asked. */
export class Condition {
  #waiting: (() => void)[] = []

  /** To be called when something has changed that somebody may wait for. */
  changed(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const look of waiting) look()
  }

  /** Resolves as soon as `holds` says so. */
  async until(holds: () => boolean): Promise<void> {
    await this.seen(() => holds() || undefined)
  }

  /** Resolves with what `look` sees, as soon as that is something. */
  async seen<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const seen = look()
      if (seen !== undefined) return seen
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }
}
