import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import type { Target } from '../load/target.ts'
import type { Upstream } from '../upstream/upstream.ts'

/** In the order in which they are shown. `against` is the hub of another checkout. */
export const peerNames = [
  'direct',
  'haproxy-http',
  'haproxy-tcp',
  'nginx',
  'http-proxy',
  'yurthub',
  'against',
  'hub',
] as const
export type PeerName = (typeof peerNames)[number]

/** A proxy between a node and the API server, or none, all measured alike. */
export interface Peer {
  readonly name: PeerName
  /** Why it cannot take part here; `undefined` if it can. */
  missing(): string | undefined
  /** Starts it in a process of its own, which ends with the workspace. */
  start(upstream: Upstream, workspace: Workspace): Promise<RunningPeer>
}

export interface RunningPeer {
  readonly name: PeerName
  readonly target: Target
  /** The same over TLS, where a peer takes its clients both ways. */
  readonly secure?: Target
  /** What the reader of the figures should know: its version, how it runs. */
  readonly description: string
  /** Whose CPU and memory count; absent where there is no process between. */
  readonly processId?: number
  /** The entry of a hub, for rows that start hubs of their own; absent: it is no hub. */
  readonly hubModule?: string
  /** Ends its process before the run is over. */
  readonly stop?: () => Promise<void>
  /**
   * Resolves once it knows that the API server is gone. Absent where it has no answers of its own.
   */
  readonly whenOffline?: () => Promise<void>
  /** Resolves once it knows that the API server is back. */
  readonly whenOnline?: () => Promise<void>
}

/** Which peers a row is of, where it is not of all. */
export const isHub = ({ hubModule }: RunningPeer): boolean => hubModule !== undefined

/** The ends of the scale: no proxy, one in C that does the same work, and those that record. */
export const isOfFew = ({ name }: RunningPeer): boolean =>
  !(['haproxy-tcp', 'nginx', 'http-proxy'] as readonly PeerName[]).includes(name)

/** Those that have answers of their own, and the API server itself beside them. */
export const isOffline = (peer: RunningPeer): boolean =>
  peer.name === 'direct' || peer.whenOffline !== undefined
