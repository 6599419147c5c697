import type { JsonObject } from '../../api/kube/json.ts'
import { objectAt, valueAt } from '../../api/kube/json-at.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
import { placementOf } from '../../node/lint/placement.ts'
import { findingsIn } from '../../node/lint/rules.ts'
import { affinityKeptOff } from '../components/placement.ts'
import type { ClusterState, LabelledNode, PodFacts } from './cluster-state.ts'
import { printable, type Owner } from './owner.ts'
import { patchOf, templateIn, type Intent, type PlannedPatch } from './patch.ts'
import { reasonsToLeave, stuckFor } from './remarks.ts'

/** The step of the plan for one owner. */
export interface Step {
  readonly owner: Owner
  /**
   * `patch`: its patch is to be applied; `wait`: it has been applied, and old pods are left;
   * `leave`: the operator decides, for `reasons`.
   */
  readonly action: 'patch' | 'wait' | 'leave'
  readonly intent: Intent
  /** Pods that the filter has on the host's network now. */
  readonly propagated: number
  readonly patch?: PlannedPatch
  /** Why it is left, each a sentence with the remedy. */
  readonly reasons: readonly string[]
  /** Facts that the operator needs before. */
  readonly notes: readonly string[]
}

/**
 * Decides for each owner, by name. `keepOff`: `namespace/name` of owners whose pods are to stay off
 * host-network nodes.
 */
export function planOf(
  state: ClusterState,
  owners: readonly Owner[],
  keepOff: readonly string[],
): readonly Step[] {
  return owners.toSorted(order).map((owner) => linted(owner, draftOf(owner, state, keepOff), state))
}

type Draft = Omit<Step, 'owner' | 'propagated'>

const order = (a: Owner, b: Owner): number => {
  const [left, right] = [a, b].map(({ namespace, name, kind }) => `${namespace}/${name}/${kind}`)
  return (left ?? '') < (right ?? '') ? -1 : 1
}

function draftOf(owner: Owner, state: ClusterState, keepOff: readonly string[]): Draft {
  const { object, kind, namespace, name } = owner
  const leave = (...reasons: string[]): Draft => ({
    action: 'leave',
    intent: 'host-network',
    reasons,
    notes: [],
  })
  if (object === undefined)
    return leave(
      `nothing is known of ${printable(`${owner.apiVersion} ${kind}`)}: have it make its pods with hostNetwork: true and their ports, or keep them off`,
    )
  const found = templateIn(object)
  if (kind !== 'Pod' && found === undefined) return leave('it has no pod template that is known')
  const template = found ? objectAt(object, ...found.path) : object
  const isHostNetwork = valueAt(template, 'spec', 'hostNetwork') === true
  const hostNetworkNodes = new Set(state.nodes.filter(isOnHost).map((node) => node.name))
  const standard = owner.pods.filter(
    (pod) => !pod.propagated && !pod.hostNetwork && !hostNetworkNodes.has(pod.node),
  )
  const isMixed = standard.length > 0 && !isHostNetwork
  const intent: Intent = keepOff.includes(`${namespace}/${name}`) ? 'keep-off' : 'host-network'
  if ((kind === 'Pod' || kind === 'Job') && !isHostNetwork)
    return leave(
      'it cannot be changed: delete it, and create it with hostNetwork: true and its ports, or kept off host-network nodes',
    )
  const isDone = isHostNetwork || (intent === 'keep-off' && affinityKeptOff(template) === undefined)
  if (isDone) {
    const reasons = kind === 'CronJob' ? ['its running Jobs end by themselves'] : stuckFor(owner)
    return { intent, action: reasons.length > 0 ? 'leave' : 'wait', reasons, notes: [] }
  }
  const nodeSelector = intent === 'keep-off' ? {} : placeOf(owner, template, state, standard)
  const patch = patchOf(object, { intent, nodeSelector })
  const reasons = reasonsToLeave(owner, { template, intent, isMixed })
  return {
    intent,
    action: reasons.length > 0 ? 'leave' : 'patch',
    ...(patch && { patch }),
    reasons,
    notes: [],
  }
}

/** Where pods stay on the nodes that they are on, if they could go elsewhere. */
function placeOf(
  { pods }: Owner,
  template: JsonObject,
  { nodes, context }: ClusterState,
  standard: readonly PodFacts[],
): Readonly<Record<string, string>> {
  const [metadata, spec] = [objectAt(template, 'metadata'), objectAt(template, 'spec')]
  if (standard.length > 0 || !placementOf({ metadata, spec }, context).standard) return {}
  const names = new Set(pods.map(({ node }) => node))
  const its = nodes.filter(({ name }) => names.has(name))
  if (its.length > 0 && its.every(isOnHost)) return { [hostNetworkLabel]: 'true' }
  const pools = new Set(its.map(({ labels }) => labels[nodePoolLabel] ?? ''))
  const [pool = ''] = pools
  return pools.size === 1 && pool !== '' ? { [nodePoolLabel]: pool } : {}
}

const isOnHost = ({ labels }: LabelledNode): boolean => labels[hostNetworkLabel] === 'true'

/** Blocks steps that cannot work, by lint's rules on the patched object. */
function linted(owner: Owner, draft: Draft, { context }: ClusterState): Step {
  const propagated = owner.pods.filter((pod) => pod.propagated).length
  const after = draft.patch?.after
  if (after === undefined) return { ...draft, owner, propagated }
  const { kind, apiVersion } = owner
  const findings = findingsIn({ ...after, kind, apiVersion }, context).filter(
    ({ level }) => level !== 'note',
  )
  const refused = findings.filter(({ rule, level }) => refusing.has(rule) && level === 'error')
  const others = findings.filter((finding) => !refused.includes(finding))
  const reasons = [...draft.reasons, ...refused.map(({ message }) => printable(message))]
  const notes = [...draft.notes, ...others.map(({ message }) => printable(message))]
  const action = reasons.length > 0 ? 'leave' : draft.action
  return { ...draft, owner, propagated, action, reasons, notes }
}

/** The API server would refuse the object, or its pods. */
const refusing = new Set(['pod-security-level', 'host-port-differs', 'same-port-twice'])
