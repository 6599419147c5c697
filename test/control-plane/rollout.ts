import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'

/** How far the controller of a workload has come with its pods. */
export interface Rollout {
  readonly state: 'progressing' | 'settled' | 'failed'
  /** Pods that its controller counts as available. */
  readonly available: number
  readonly wanted: number
}

/**
 * The rollout of a Deployment, DaemonSet or StatefulSet, by the rules of `kubectl rollout status`
 * (k8s.io/kubectl pkg/polymorphichelpers/rollout_status.go): settled once all pods are of the last
 * template and available, and none of an older one is left. With the strategy OnDelete it is
 * settled once the controller has seen the template.
 */
export function rolloutOf(kind: string, workload: JsonObject): Rollout {
  const number = (...path: string[]): number => {
    const found = valueAt(workload, ...path)
    return typeof found === 'number' ? found : 0
  }
  const ofStatus = (name: string): number => number('status', name)
  const counts =
    kind === 'DaemonSet'
      ? ['desiredNumberScheduled', 'updatedNumberScheduled', 'numberAvailable']
      : ['replicas', 'updatedReplicas', 'availableReplicas']
  const [all = 0, updated = 0, available = 0] = counts.map(ofStatus)
  const desired = valueAt(workload, 'spec', 'replicas')
  const wanted = kind === 'DaemonSet' ? all : typeof desired === 'number' ? desired : 1
  const seen = ofStatus('observedGeneration') >= number('metadata', 'generation')
  const onDelete = textAt(workload, 'spec', 'updateStrategy', 'type') === 'OnDelete'
  const done = updated >= wanted && available >= wanted && (kind === 'DaemonSet' || all === wanted)
  const failed = listAt(workload, 'status', 'conditions').some(
    (condition) => textAt(condition, 'reason') === 'ProgressDeadlineExceeded',
  )
  const state = !seen
    ? 'progressing'
    : onDelete || done
      ? 'settled'
      : failed
        ? 'failed'
        : 'progressing'
  return { state, available, wanted }
}
