import type { JsonObject } from '../../api/kube/json.ts'
import { objectAt, textAt, valueAt } from '../../api/kube/json-at.ts'
import { obstacleIn } from '../../api/kube/host-network-pod.ts'
import type { SchedulableNode } from '../../api/kube/scheduling.ts'
import { obstacleTo, poolNameLabel } from '../admission/propagation.ts'
import { makesWorkloads, printable, type Owner } from './owner.ts'
import { mostAway, templateIn, type Intent } from './patch.ts'
import type { PlanChoices } from './choices.ts'

/** Why an owner is not to be patched as the plan has it, each with the remedy. */
export function reasonsToLeave(
  owner: Owner,
  { template, intent, isMixed }: { template: JsonObject; intent: Intent; isMixed: boolean },
  { mixed }: PlanChoices,
): readonly string[] {
  const { namespace, name, writer } = owner
  const reasons: string[] = []
  if (writer !== undefined)
    reasons.push(
      `${printable(writer)} writes it, and could overwrite a patch: make the change at its source`,
    )
  if (isMixed && mixed === 'ask' && intent === 'host-network')
    reasons.push(
      'it has pods on standard nodes, too, and one template for all: give --mixed=host-network (on standard nodes they get the host network as well), --mixed=keep-off, or split it',
    )
  const obstacle = intent === 'host-network' ? obstacleTo(withoutHostPorts(template)) : undefined
  if (obstacle !== undefined)
    reasons.push(
      `${obstacle}, which excludes the host network: give --keep-off=${namespace}/${name}`,
    )
  return [...reasons, ...stuckFor(owner)]
}

/** Why a change of the template alone would not replace the pods. */
export function stuckFor({ kind, object }: Pick<Owner, 'kind' | 'object'>): readonly string[] {
  const byHand = 'change its template, then delete its pods one after another'
  const reasons: string[] = []
  if (kind === 'ReplicaSet' || kind === 'ReplicationController')
    reasons.push(`a ${kind} does not replace its pods: ${byHand}`)
  if (textAt(object, 'spec', 'updateStrategy', 'type') === 'OnDelete')
    reasons.push(`its pods are replaced as they are deleted (OnDelete): ${byHand}`)
  if (valueAt(object, 'spec', 'paused') === true)
    reasons.push('its rollout is paused: resume it first')
  if (object && isHeldBack(kind, object))
    reasons.push(
      'its partition may hold back a change, which a whole rollout would release: finish or withdraw its rollout first, and set the partition to 0',
    )
  if (valueAt(object, 'metadata', 'deletionTimestamp') !== undefined)
    reasons.push('it is being deleted')
  return reasons
}

/**
 * Whether a StatefulSet has two revisions, one of them for the pods above its partition. The
 * StatefulSets of a YurtAppSet, which are not read here, may have.
 */
function isHeldBack(kind: string, object: JsonObject): boolean {
  const around = templateIn(object)?.path.slice(0, -1) ?? []
  const strategy = objectAt(object, ...around, 'updateStrategy', 'rollingUpdate')
  if (!(Number(strategy['partition'] ?? 0) > 0)) return false
  const revisions = ['currentRevision', 'updateRevision'].map((field) =>
    textAt(object, 'status', field),
  )
  return makesWorkloads({ kind }) || revisions[0] !== revisions[1]
}

/** The patch changes a hostPort that differs: that is no obstacle here. */
const withoutHostPorts = (pod: JsonObject): JsonObject => ({
  ...pod,
  spec: { ...objectAt(pod, 'spec'), containers: [], initContainers: [] },
})

/** Whether no more than one pod is away at a time; a DaemonSet drops kept-off nodes all at once. */
function paceOf(owner: Owner, after: JsonObject, intent: Intent): string {
  const found = templateIn(after)
  const most = found && mostAway(after, found)
  const isDropped = found?.workload === 'DaemonSet' && intent === 'keep-off'
  if (most === undefined || most > 1 || isDropped) return ''
  return `, and replaces one pod at a time${makesWorkloads(owner) ? ' in each pool' : ''}`
}

/** The node controller taints a node whose kubelet is silent. */
const unreachable = 'node.kubernetes.io/unreachable'

/** Whether a rollout has a time with no pod of the owner serving, or of a YurtAppSet in a pool. */
export function hasGap({ object, pods }: Pick<Owner, 'object' | 'pods'>): boolean {
  const { path = [] } = templateIn(object ?? {}) ?? {}
  const recreates = textAt(object, ...path.slice(0, -1), 'strategy', 'type') === 'Recreate'
  const inPools = Object.groupBy(pods, ({ labels }) => textAt(labels, poolNameLabel))
  return recreates || Object.values(inPools).some((its = []) => its.length < 2)
}

/** Facts that the operator needs before an owner is changed. */
export function notesOn(
  owner: Owner,
  {
    template,
    after,
    intent,
    budgets,
    nodes,
  }: {
    template: JsonObject
    /** The object with its patch. */
    after: JsonObject
    intent: Intent
    budgets: readonly { readonly name: string }[]
    nodes: readonly SchedulableNode[]
  },
): readonly string[] {
  const { object, pods, kind } = owner
  const notes: string[] = []
  const obstacle = obstacleIn(valueAt(template, 'spec'))
  if (obstacle && intent === 'host-network') notes.push(obstacle.message)
  for (const { name } of budgets)
    notes.push(
      `disruption budget ${printable(name)} allows no disruption now: a rollout does not ask it${paceOf(owner, after, intent)}`,
    )
  const rolls = ['Deployment', 'StatefulSet'].includes(templateIn(object ?? {})?.workload ?? '')
  if (rolls && hasGap(owner))
    notes.push(
      makesWorkloads({ kind })
        ? 'its pools are rolled out at the same time: where one has a single pod, or with the strategy Recreate, there is a gap in its service'
        : 'all its pods are gone before a new one is ready: a gap in its service',
    )
  if (kind === 'DaemonSet') notes.push('each node is without its pod while that is replaced')
  const its = new Set(pods.map(({ node }) => node))
  const away = nodes.filter(
    ({ name, taints }) => its.has(name) && taints.some(({ key }) => key === unreachable),
  )
  if (away.length > 0)
    notes.push(
      `${away.length} of its nodes cannot be reached: its rollout does not settle before they are back, or removed`,
    )
  return notes
}
