import type { Json } from '../api/kube/json.ts'
import { listAt, optionalTextAt, textAt, valueAt } from '../api/kube/json-at.ts'
import { ageColumn, column, nameColumn, none, text } from './column.ts'
import { printed, type KubeObject } from './object.ts'

// As kubernetes pkg/printers/internalversion/printers.go shows a pod.

const statuses = (pod: KubeObject): readonly Json[] => listAt(pod, 'status', 'containerStatuses')

const isReady = (status: Json): boolean =>
  valueAt(status, 'ready') === true && valueAt(status, 'state', 'running') !== undefined

const readyCount = (pod: KubeObject): Json =>
  `${statuses(pod).filter(isReady).length}/${listAt(pod, 'spec', 'containers').length}`

const restarts = (pod: KubeObject): Json =>
  String(
    statuses(pod).reduce<number>(
      (sum, status) => sum + Number(valueAt(status, 'restartCount') ?? 0),
      0,
    ),
  )

function phase(pod: KubeObject): Json {
  const own = textAt(pod, 'status', 'reason') || textAt(pod, 'status', 'phase') || ''
  const reason = waitingReason(statuses(pod)) ?? own
  return optionalTextAt(pod, 'metadata', 'deletionTimestamp') === undefined
    ? reason
    : optionalTextAt(pod, 'status', 'reason') === 'NodeLost'
      ? 'Unknown'
      : 'Terminating'
}

/** The reason why a container does not run: that of the first one with a reason. */
function waitingReason(all: readonly Json[]): string | undefined {
  for (const status of all) {
    const waiting = optionalTextAt(status, 'state', 'waiting', 'reason')
    if (waiting) return waiting
    const terminated = valueAt(status, 'state', 'terminated')
    if (terminated !== undefined) {
      const code = valueAt(terminated, 'exitCode')
      return textAt(terminated, 'reason') || `ExitCode:${printed(code ?? 0)}`
    }
  }
  return undefined
}

function gates(pod: KubeObject): Json {
  const all = listAt(pod, 'spec', 'readinessGates')
  if (all.length === 0) return none
  const met = all.filter((gate) =>
    listAt(pod, 'status', 'conditions').some(
      (condition) =>
        optionalTextAt(condition, 'type') === optionalTextAt(gate, 'conditionType') &&
        optionalTextAt(condition, 'status') === 'True',
    ),
  )
  return `${met.length}/${all.length}`
}

export const podColumns = [
  nameColumn,
  column(
    'Ready',
    readyCount,
    0,
    'The aggregate readiness state of this pod for accepting traffic.',
  ),
  column('Status', phase, 0, 'The aggregate status of the containers in this pod.'),
  column(
    'Restarts',
    restarts,
    0,
    'The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.',
  ),
  ageColumn,
  column(
    'IP',
    text('status', 'podIP'),
    1,
    'podIP address allocated to the pod. Routable at least within the cluster. Empty if not yet allocated.',
  ),
  column(
    'Node',
    text('spec', 'nodeName'),
    1,
    'NodeName indicates in which node this pod is scheduled. If empty, this pod is a candidate for scheduling by the scheduler defined in schedulerName. Once this field is set, the kubelet for this node becomes responsible for the lifecycle of this pod. This field should not be used to express a desire for the pod to be scheduled on a specific node. https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename',
  ),
  column(
    'Nominated Node',
    text('status', 'nominatedNodeName'),
    1,
    'nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be scheduled right away as preemption victims receive their graceful termination periods. This field does not guarantee that the pod will be scheduled on this node. Scheduler may decide to place the pod elsewhere if other nodes become available sooner. Scheduler may also decide to give the resources on this node to a higher priority pod that is created after preemption. As a result, this field may be different than PodSpec.nodeName when the pod is scheduled.',
  ),
  column(
    'Readiness Gates',
    gates,
    1,
    'If specified, all readiness gates will be evaluated for pod readiness. A pod is ready when all its containers are ready AND all conditions specified in the readiness gates have status equal to "True" More info: https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates',
  ),
]
