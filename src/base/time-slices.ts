import { elapsed, turn } from './clock.ts'

/** Events of watches and answers wait no longer than this for the work. */
export const sliceMs = 5

/** Work that would block the event loop for long: it is done in slices of a few milliseconds. */
export class TimeSlices {
  #began = elapsed()
  #tookMs = 0

  /** How long the work has taken, others' turns not counted. */
  get tookMs(): number {
    return this.#tookMs + elapsed() - this.#began
  }

  /**
   * To be awaited after each step. At the end of a slice it resolves once all that waits has had
   * its turn.
   */
  async pause(): Promise<void> {
    const slice = elapsed() - this.#began
    if (slice < sliceMs) return
    this.#tookMs += slice
    await turn()
    this.#began = elapsed()
  }
}
