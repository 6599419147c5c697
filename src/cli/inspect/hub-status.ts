import type { HubStatus } from '../../hub/wiring/status/document.ts'
import type { Inspected } from './inspection.ts'

/** The status document of the running hub. */
export const hubStatus = async (from: Inspected): Promise<HubStatus> =>
  (await from.report('status')) as HubStatus

/** A line for what a bounded list lacks. */
export const omittedLine = ({ omitted }: { readonly omitted: number }): string =>
  omitted === 0 ? '' : `${omitted} more are not shown.\n`
