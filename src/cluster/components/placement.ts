import type { Json, JsonObject } from '../../api/kube/json.ts'
import { valueAt, listAt, objectAt, textAt } from '../../api/kube/json-at.ts'
import { alternativesOf } from '../../api/kube/node-affinity.ts'
import { mayRunOnHostNetwork } from '../../node/lint/placement.ts'
import { oldLabels } from '../../node/lint/rules/old-names.ts'
import { keptOffHostNetwork } from '../admission/pod.ts'

/**
 * Names of the label in the proposals: an affinity on them has no effect, as no node carries them.
 */
const oldKeys = [...oldLabels, 'node-network-mode']

/** Where the pods of a workload may go. */
export interface WorkloadPlacement {
  /** Whether they are kept off nodes of host-network pools. */
  readonly keptOff: boolean
  /** Keys of the proposals that it goes by, without effect. */
  readonly oldLabels: readonly string[]
}

/** Reads the selectors of a pod, or of a workload's template. */
export function workloadPlacement(pod: JsonObject): WorkloadPlacement {
  const spec = objectAt(pod, 'spec')
  const keys = new Set([
    ...Object.keys(objectAt(spec, 'nodeSelector')),
    ...alternativesOf(pod)
      .flatMap((term) => listAt(term, 'matchExpressions'))
      .map((each) => textAt(each, 'key')),
  ])
  return {
    keptOff: !mayRunOnHostNetwork(spec),
    oldLabels: oldKeys.filter((label) => keys.has(label)),
  }
}

/**
 * The affinity that keeps a template's pods off, without any other change; absent where there is
 * nothing to change it to.
 */
export function affinityKeptOff(template: JsonObject): Json | undefined {
  const before = valueAt(template, 'spec', 'affinity')
  const after = valueAt(keptOffHostNetwork(template), 'spec', 'affinity')
  return JSON.stringify(before) === JSON.stringify(after) ? undefined : after
}
