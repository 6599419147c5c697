import type { JsonObject } from '../../api/kube/json.ts'
import { objectAt, textAt, valueAt } from '../../api/kube/json-at.ts'
import { obstacleTo } from '../admission/propagation.ts'
import { printable, type Owner } from './owner.ts'
import { templateIn, type Intent } from './patch.ts'

/** Why an owner is not to be patched as the plan has it, each with the remedy. */
export function reasonsToLeave(
  owner: Owner,
  { template, intent, isMixed }: { template: JsonObject; intent: Intent; isMixed: boolean },
): readonly string[] {
  const { namespace, name, writer } = owner
  const reasons: string[] = []
  if (writer !== undefined)
    reasons.push(
      `${printable(writer)} writes it, and could overwrite a patch: make the change at its source`,
    )
  if (isMixed && intent === 'host-network')
    reasons.push(
      `it has pods on standard nodes, too, and one template for all: split it, give --keep-off=${namespace}/${name}, or apply the patch (on standard nodes they get the host network as well)`,
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
  const around = templateIn(object ?? {})?.path.slice(0, -1) ?? []
  if (Number(valueAt(object, ...around, 'updateStrategy', 'rollingUpdate', 'partition') ?? 0) > 0)
    reasons.push('its partition holds pods back: finish its rollout, and set the partition to 0')
  if (valueAt(object, 'metadata', 'deletionTimestamp') !== undefined)
    reasons.push('it is being deleted')
  return reasons
}

/** The patch changes a hostPort that differs: that is no obstacle here. */
const withoutHostPorts = (pod: JsonObject): JsonObject => ({
  ...pod,
  spec: { ...objectAt(pod, 'spec'), containers: [], initContainers: [] },
})
