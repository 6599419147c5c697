import type { Target } from '../load/target.ts'

/** The API server everything is measured against. */
export interface Upstream {
  /** What it is, for the reader of the figures. */
  readonly description: string
  /** As the node, with its client certificate. */
  readonly node: Target & { readonly certificate: string; readonly key: string }
  /** With all rights. */
  readonly admin: Target
  /** The node's credentials, as a proxy is given them. */
  readonly kubeconfig: string
  /** Credentials with all rights, in the format of a proxy. */
  readonly adminKubeconfig: string
  /** Kills it for good. */
  stop(): Promise<void>
  /** Absent where it would have forgotten everything. */
  readonly outage?: Outage
}

/**
 * Two ways in which an API server goes, and how it comes back. Each resolves when that has
 * happened.
 */
export interface Outage {
  /** It takes connections and answers none. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  kill(): Promise<void>
  /** With what it knew; resolves when it is ready. */
  start(): Promise<void>
}

/** The node whose pods are listed and watched. */
export const nodeName = 'edge-1'
