import type { LoadProcess } from '../load/load-process.ts'
import type { Target } from '../load/target.ts'
import type { Metric, Sample } from '../measure/row.ts'
import type { HubsOfRows } from '../peers/own-hubs.ts'
import type { RunningPeer } from '../peers/peer.ts'
import type { Outage } from '../upstream/upstream.ts'

/** What rows have at hand. */
export interface Setting {
  readonly load: LoadProcess
  /** For rows that write while they read. */
  readonly writer: LoadProcess
  /** The API server, as the node. */
  readonly direct: Target
  /** The API server with the right to write. */
  readonly admin: Target
  /** For rows that need an outage, which is over when they are done. */
  readonly outage?: Outage
  /** For rows that start hubs of their own. */
  readonly hubs: HubsOfRows
  /** The paths of the node's pods. */
  readonly pods: readonly string[]
  /** How many lists compile what is not to be measured. */
  readonly warmLists: number
  /** How long one measurement lasts. */
  readonly seconds: number
}

/**
 * How long a peer is warmed up: as long as it is measured in one round. A proxy of a node has run
 * for days; V8 compiles the path of a request over its first ten thousand.
 */
export const warmSeconds = ({ seconds }: Pick<Setting, 'seconds'>): number => seconds

/** One row of the benchmark. */
export interface Scenario {
  /** What `--only` names, by the whole or by its beginning up to a dash. */
  readonly name: string
  readonly title: string
  /**
   * `online`: the API server is there. `outage`: it can be taken away and given back. `offline`: it
   * is gone; peers that have no answers of their own are measured before it goes, for comparison.
   */
  readonly needs: 'online' | 'outage' | 'offline'
  readonly metrics: readonly Metric[]
  /** Which peers it can be measured of; absent: all. */
  takes?(peer: RunningPeer): boolean
  /**
   * Brings a peer to where it is to be measured, while the API server is there: warm, and with
   * everything recorded that is asked for later.
   */
  prime(peer: RunningPeer, setting: Setting): Promise<void>
  /** One measurement. */
  measure(peer: RunningPeer, setting: Setting): Promise<Sample>
}
