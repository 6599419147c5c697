import type { Result } from './outcome.ts'
import type { Change } from './series.ts'

/** A row as it was seen. */
export interface Observed extends Result {
  /** From the creation of the first pod until the last change of what pods came to. */
  readonly settledMs: number
  /** How long was looked: until then the rest was counted. */
  readonly watchedMs: number
  readonly restarts: number
  /** How often events of each reason were told. */
  readonly events: Readonly<Record<string, number>>
  /** How often the API was written to: `kubelet patch pods/status`. */
  readonly writes: Readonly<Record<string, number>>
  readonly changes: readonly Change[]
}
