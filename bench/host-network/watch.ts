import type { Outcome } from './outcome.ts'
import type { Row } from './table.ts'

/** How long a row is looked at, whatever is seen before. */
export interface Watch {
  /** From what happens to its pods, or else from their creation. */
  readonly atLeastMs: number
  /** Whether also where all of its pods serve. */
  readonly evenIfAllServe: boolean
}

/** The pods of yurthub 1.4 break more than a minute after its filter was switched off. */
const switchedOffMs = 90_000

/** A pod that comes before the port is free may get it after its back-off. */
const undecidedMs = 60_000

/** Such pods go on causing events, restarts and writes: those of all are counted for as long. */
const unsettledMs = 30_000
const unsettled: readonly Outcome[] = ['CrashLoop', 'Stuck']

/** What looks settled after some seconds may not be. */
export function watchOf({ arm, workload, modelled }: Row, measuredMs: number): Watch {
  const switches = workload.happens === 'switch off' && arm.propagation !== 'off'
  const breaks = unsettled.some((outcome) => (modelled.counts[outcome] ?? 0) > 0)
  return {
    atLeastMs: Math.max(
      switches ? switchedOffMs : 0,
      modelled.others === undefined ? 0 : undecidedMs,
      breaks ? unsettledMs : 0,
      workload.measured ? measuredMs : 0,
    ),
    evenIfAllServe: switches,
  }
}
