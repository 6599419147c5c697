import type { HubRunner } from './hub-files.ts'
import type { RemovedFlags } from './kubelet-flags.ts'
import type { Rights } from './node-files.ts'

/** The original of a file that `join` has written. */
export interface RecordedFile {
  readonly path: string
  /** The original, kept under its checksum; `null`: there was none. */
  readonly original: (Rights & { readonly sha256: string }) | null
  /** Checksums of what `join` has written there, or was about to. */
  readonly written: readonly string[]
}

/** Everything that is needed to undo a join. */
export type JoinRecord = JoinedNode & HubRunner

export interface JoinedNode {
  readonly version: 1
  readonly nodePool: string
  readonly hostNetwork: boolean
  readonly files: readonly RecordedFile[]
  /** Folders that `join` made, the innermost last. */
  readonly folders: readonly string[]
  readonly taken: RemovedFlags
  /** The kubeconfig that leads to the hub, and the file of the kubelet's flags. */
  readonly kubeconfig: string
  readonly kubeletFlags: string
  /** The kubelet's original kubeconfig: how to reach an API server without the hub. */
  readonly kubeletKubeconfig: string
}
