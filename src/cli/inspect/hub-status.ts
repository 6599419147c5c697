import type { HubStatus } from '../../hub/wiring/status/document.ts'
import type { StoppedStatus } from '../../hub/wiring/stopped.ts'
import type { Inspected } from './inspection.ts'

/** The status document of the running hub. */
export const hubStatus = async (from: Inspected): Promise<HubStatus> =>
  (await from.report('status')) as HubStatus

/** The status document of the running hub, or the parts of it in the files of a stopped one. */
export const anyStatus = async (from: Inspected): Promise<HubStatus | StoppedStatus> =>
  (await from.report('status')) as HubStatus | StoppedStatus

/** A line for the items that a bounded list leaves out. */
export const omittedLine = ({ omitted }: { readonly omitted: number }): string =>
  omitted === 0 ? '' : `${omitted} more are not shown.\n`
