import type { Baseline, FleetNode } from './fleet.ts'

/** The image that a node is to run. */
export interface Target {
  readonly image: string
  /** '' where it is not known: that of a hub that did not report. */
  readonly version: string
}

/** Whether a node passes the gate of its wave. */
export type GateVerdict =
  | { readonly state: 'passed' }
  /** It may still pass. */
  | { readonly state: 'waiting'; readonly why: string }
  /** It will not. */
  | { readonly state: 'failed'; readonly why: string }

const waiting = (why: string): GateVerdict => ({ state: 'waiting', why })

/**
 * Decides on a node after its installer was replaced: it passes while the hub of the target runs,
 * is ready, would come back offline if it would have before, and refuses nothing that the hub
 * before did not refuse.
 */
export function gateOf(node: FleetNode, baseline: Baseline, target: Target): GateVerdict {
  const { pod, installed, report, offlineReady } = node
  if (pod?.image !== target.image) return waiting('its installer has not started')
  const isReported = installed?.image === target.image
  if (isReported && installed.state === 'Refused')
    return { state: 'failed', why: `its installer refused: ${installed.message ?? ''}` }
  if (isReported && installed.state === 'Failed')
    return waiting(`its installer failed: ${installed.message ?? ''}`)
  if (!isReported || installed.state !== 'Installed') return waiting('its installer is at work')
  if (target.version !== '' && report?.version !== target.version)
    return waiting(`its hub reports ${report?.version ?? 'nothing'}, and not ${target.version}`)
  if (report !== undefined && report.started === baseline.started)
    return waiting('its hub has not started anew')
  if (report && report.failing.length > 0)
    return waiting(`its hub is not ready: ${report.failing.join(', ')}`)
  if (!node.isReady) return waiting('its kubelet is not ready')
  if (baseline.offlineReady === 'True' && offlineReady?.status !== 'True')
    return waiting(
      `it would no longer come back without a link: ${offlineReady?.message ?? 'no verdict'}`,
    )
  const refused = report?.refused.filter((each) => !baseline.refused.includes(each)) ?? []
  if (refused.length > 0)
    return {
      state: 'failed',
      why: `its hub refuses requests that it accepted before: ${refused.join(', ')}`,
    }
  return { state: 'passed' }
}

/** How a node is before its hub is upgraded to `to`. */
export const baselineOf = (
  { report, installed, offlineReady }: FleetNode,
  to: string,
): Baseline => ({
  to,
  version: report?.version ?? installed?.version ?? '',
  started: report?.started ?? '',
  offlineReady: offlineReady?.status ?? '',
  refused: report?.refused ?? [],
})
