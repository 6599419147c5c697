import { elapsed, turn } from './clock.ts'

/**
 * Other work of the event loop waits no longer than this in each of its turns: an event of a watch
 * takes about three, from its upstream to the disk and to its clients.
 */
export const sliceMs = 1

/**
 * Divides long work into slices of a millisecond, between which the event loop runs other work.
 */
export class TimeSlices {
  #began = elapsed()

  /**
   * Awaited after each step. At the end of a slice it resolves in the next turn of the event loop.
   */
  async pause(): Promise<void> {
    if (elapsed() - this.#began < sliceMs) return
    await turn()
    this.#began = elapsed()
  }
}
