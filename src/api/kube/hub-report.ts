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
