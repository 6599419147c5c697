import type { Intent } from './patch.ts'

/** The operator's choices where the cluster's state does not decide. */
export interface PlanChoices {
  /** For owners with pods on host-network nodes and on others. */
  readonly mixed: 'ask' | Intent
  /** `namespace/name` of owners whose pods are to stay off host-network nodes. */
  readonly keepOff: readonly string[]
}
