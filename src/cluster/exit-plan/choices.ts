import type { Intent } from './patch.ts'

/** The operator's choices where the cluster's state does not decide. */
export interface PlanChoices {
  /** For owners with pods on host-network nodes and on others. */
  readonly mixed: 'ask' | Intent
  /** `namespace/name` of owners whose pods are to stay off host-network nodes. */
  readonly keepOff: readonly string[]
  /** Whether owners that Helm, Argo CD or Flux write are patched all the same. */
  readonly includeManaged: boolean
  /** Whether pods and Jobs, which cannot be changed, are deleted and created again. */
  readonly recreate: boolean
  /** `namespace/name`; empty: all. */
  readonly only: readonly string[]
}
