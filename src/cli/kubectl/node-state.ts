import { conditionOf } from '../../api/kube/conditions.ts'
import { hubReportIn, offlineReadyCondition } from '../../api/kube/hub-report.ts'
import { installReportIn } from '../../api/kube/install-report.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import { textAt } from '../../api/kube/json-at.ts'
import { ageOf, humanDuration } from '../../api/kube/tables/age.ts'
import { printable } from '../../cluster/exit-plan/owner.ts'

/** The hub of a node, as the Node shows it. Texts are fit for a terminal. */
export interface NodeState {
  readonly name: string
  /** `null`: no kubelet has ever reported. */
  readonly online: boolean | null
  /** Since when it has been online, or offline. */
  readonly since: string | null
  /** `null`: neither hub nor installer has reported. */
  readonly version: string | null
  /** Whether the node and its pods would come back without a link; `null`: no hub has said. */
  readonly offlineReady: boolean | null
  /** When the hub reported last. */
  readonly reportedAt: string | null
  /** What is wrong: checks of the hub, its boot verdict, the installer. */
  readonly failing: readonly string[]
}

/** A hub reports every five minutes: three reports are missing. */
const silentMs = 15 * 60_000

/** A node writes its annotations itself. */
const longest = 300

const shown = (text: string): string =>
  printable(text.length > longest ? `${text.slice(0, longest)}…` : text)

export function stateOf(node: JsonObject, now: number): NodeState {
  const ready = conditionOf(node, 'Ready')
  const condition = conditionOf(node, offlineReadyCondition)
  const installed = installReportIn(node)
  const silence = now - Date.parse(textAt(condition, 'lastHeartbeatTime'))
  // A hub that was removed leaves its last report.
  const isGone = installed?.state === 'Removed' && silence > silentMs
  const [own, report] = isGone ? [] : [condition, hubReportIn(node)]
  const reportedAt = timeOf(textAt(own, 'lastHeartbeatTime'))
  const changedAt = timeOf(textAt(ready, 'lastTransitionTime'))
  // A kubelet that is stopped while its hub goes on reporting is no outage.
  const outlives = reportedAt !== null && changedAt !== null && reportedAt > changedAt
  const online = ready ? textAt(ready, 'status') !== 'Unknown' || outlives : null
  const since = (online === true ? timeOf(report?.onlineSince ?? '') : null) ?? changedAt
  const version = report?.version ?? (isGone ? '' : installed?.version) ?? ''
  const offlineReady = own ? textAt(own, 'status') === 'True' : null
  const isInstalled = installed === undefined || /^(Installed|Removed)$/.test(installed.state)
  const failing = [
    ...(report?.failing ?? []),
    ...(offlineReady === false ? [`boot: ${textAt(own, 'message')}`] : []),
    ...(isInstalled ? [] : [`install: ${installed.state} ${installed.message ?? ''}`.trim()]),
    ...(online === true && reportedAt !== null && silence > silentMs
      ? [`report: none from the hub for ${humanDuration(silence)}`]
      : []),
  ]
  return {
    name: textAt(node, 'metadata', 'name'),
    online,
    since,
    version: version === '' ? null : shown(version),
    offlineReady,
    reportedAt,
    failing: failing.slice(0, 10).map(shown),
  }
}

/** The time in UTC. */
function timeOf(text: string): string | null {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? null : new Date(ms).toISOString()
}

/** The worst come first: 0, offline and would not come back; 5, without a hub that reports. */
export function rankOf({ online, offlineReady, failing, reportedAt }: NodeState): number {
  if (reportedAt === null && failing.length === 0) return online === false ? 1 : 5
  if (online === false) return offlineReady === false ? 0 : 1
  if (failing.length === 0) return 4
  return failing.every((each) => each.startsWith('boot: ')) ? 3 : 2
}

/** Whether it needs an operator. */
export const isWrong = (state: NodeState): boolean => rankOf(state) < 4

export const none = '<none>'

export const onlineText = ({ online }: NodeState): string =>
  online === null ? none : online ? 'Yes' : 'No'

export const ageText = ({ since }: NodeState): string => (since === null ? none : ageOf(since))

export const readyText = ({ offlineReady }: NodeState): string =>
  offlineReady === null ? none : offlineReady ? 'True' : 'False'
