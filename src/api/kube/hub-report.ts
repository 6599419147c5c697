import { parseJson, type JsonObject } from './json.ts'
import { listAt, textAt } from './json-at.ts'

/** The condition of a Node that shows its hub's boot verdict in the cluster. */
export const offlineReadyCondition = 'OfflineReady'

/** On a Node: the `HubReport` of its hub, as JSON, written with that condition. */
export const hubReportAnnotation = 'nodehub.io/report'

/** What a hub says of itself in the cluster. */
export interface HubReport {
  readonly version: string
  /** Since when it has reached the cloud, in RFC 3339. */
  readonly onlineSince: string
  /** The readiness checks that fail, each with its fault. */
  readonly failing: readonly string[]
}

/** The report on a Node; `undefined` where there is none, or none that can be read. */
export function hubReportIn(node: JsonObject): HubReport | undefined {
  const report = parseJson(textAt(node, 'metadata', 'annotations', hubReportAnnotation))
  const version = textAt(report, 'version')
  if (version === '') return undefined
  const failing = listAt(report, 'failing').filter((each) => typeof each === 'string')
  return { version, onlineSince: textAt(report, 'onlineSince'), failing }
}
