import type { Outcome } from './outcome.ts'

/** What a pod is at some time: on its way, what it may stay, or deleted. */
export type State = Outcome | 'Starting' | 'Gone'

/** From `ms` after the first pod was asked for, `pod` was seen as `state`. */
export interface Change {
  readonly ms: number
  readonly pod: string
  readonly state: State
}

/**
 * What was seen of pods over time; a time is when it was seen, some tens of milliseconds after it
 * was so.
 */
export class Series {
  readonly changes: Change[] = []
  readonly #states = new Map<string, State>()
  readonly #begun = performance.now()

  /** Milliseconds since it was begun. */
  get ms(): number {
    return Math.round(performance.now() - this.#begun)
  }

  see(pod: string, state: State): void {
    if (this.#states.get(pod) === state) return
    this.#states.set(pod, state)
    this.changes.push({ ms: this.ms, pod, state })
  }
}
