import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import type { Target } from '../load/target.ts'
import type { Upstream } from '../upstream/upstream.ts'

/** A proxy between a node and the API server, or none, all measured alike. */
export interface Peer {
  readonly name: string
  /** Why it cannot take part here; `undefined` if it can. */
  missing(): string | undefined
  /** Starts it in a process of its own, which ends with the workspace. */
  start(upstream: Upstream, workspace: Workspace): Promise<RunningPeer>
}

export interface RunningPeer {
  readonly name: string
  readonly target: Target
  /** The same over TLS, where a peer takes its clients both ways. */
  readonly secure?: Target
  /** What the reader of the figures should know: its version, how it runs. */
  readonly description: string
  /** Whose CPU and memory count; absent where there is no process between. */
  readonly processId?: number
  /** Ends its process before the run is over. */
  readonly stop?: () => Promise<void>
  /**
   * Resolves once it knows that the API server is gone. Absent where it has no answers of its own.
   */
  readonly whenOffline?: () => Promise<void>
  /** Resolves once it knows that the API server is back. */
  readonly whenOnline?: () => Promise<void>
}
