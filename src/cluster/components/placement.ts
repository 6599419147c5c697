import type { Json, JsonObject } from '../../api/kube/json.ts'
import { valueAt, listAt, objectAt, textAt } from '../../api/kube/json-at.ts'
import { alternativesOf } from '../../api/kube/node-affinity.ts'
import { hostNetworkLabel } from '../../api/kube/node-pool.ts'
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

/**
 * Reads the selectors of a pod, or of a workload's template. The pods are kept off where each
 * alternative of their required node affinity excludes host-network nodes (`NotIn ["true"]`,
 * `DoesNotExist`, `In` without `true`), or their node selector requires another value of the label.
 * Terms without any condition match nothing and are left out.
 */
export function workloadPlacement(pod: JsonObject): WorkloadPlacement {
  const terms = alternativesOf(pod)
  const selector = objectAt(pod, 'spec', 'nodeSelector')
  const wanted = selector[hostNetworkLabel]
  const keys = new Set([
    ...Object.keys(selector),
    ...terms.flatMap(conditionsOf).map((each) => textAt(each, 'key')),
  ])
  return {
    keptOff:
      (wanted !== undefined && wanted !== 'true') ||
      (terms.length > 0 && terms.every((term) => conditionsOf(term).some(keepsOff))),
    oldLabels: oldKeys.filter((label) => keys.has(label)),
  }
}

const conditionsOf = (term: Json): readonly Json[] => listAt(term, 'matchExpressions')

function keepsOff(condition: Json): boolean {
  if (textAt(condition, 'key') !== hostNetworkLabel) return false
  const values = listAt(condition, 'values')
  switch (textAt(condition, 'operator')) {
    case 'DoesNotExist':
      return true
    case 'NotIn':
      return values.includes('true')
    case 'In':
      return !values.includes('true')
    default:
      return false
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
