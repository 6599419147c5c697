import type { JsonObject } from '../../api/kube/json.ts'
import { objectAt, valueAt } from '../../api/kube/json-at.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
import {
  affinityAdmits,
  labelSelectorMatches,
  type SchedulableNode,
} from '../../api/kube/scheduling.ts'
import { findingsIn } from '../../node/lint/rules.ts'
import { affinityKeptOff } from '../components/placement.ts'
import { texts } from '../previous-attributes.ts'
import type { PlanChoices } from './choices.ts'
import type { ClusterState, PodFacts } from './cluster-state.ts'
import { printable, type Owner } from './owner.ts'
import { patchOf, templateIn, type Intent, type PlannedPatch } from './patch.ts'
import { recreated } from './recreate.ts'
import { hasGap, notesOn, reasonsToLeave, stuckFor } from './remarks.ts'

/** The step of the plan for one owner. */
export interface Step {
  readonly owner: Owner
  /**
   * `patch`: its patch is to be applied; `wait`: it has been applied, and old pods are left;
   * `recreate`: to be deleted and created again; `leave`: the operator decides, for `reasons`.
   */
  readonly action: 'patch' | 'wait' | 'recreate' | 'leave'
  readonly intent: Intent
  /** Pods that the filter has on the host's network now. */
  readonly propagated: number
  readonly patch?: PlannedPatch
  /** The replacement of an object that is created again. */
  readonly manifest?: JsonObject
  /** Why it is left, each a sentence with the remedy. */
  readonly reasons: readonly string[]
  /** Facts that the operator needs before. */
  readonly notes: readonly string[]
}

/** Decides for each owner, in an order that keeps service. */
export function planOf(
  state: ClusterState,
  owners: readonly Owner[],
  choices: PlanChoices,
): readonly Step[] {
  return owners
    .map((owner) => ({ owner, draft: draftOf(owner, state, choices) }))
    .toSorted((a, b) => rank(a) - rank(b) || order(a.owner, b.owner))
    .map(({ owner, draft }) => linted(owner, draft, state))
}

type Draft = Omit<Step, 'owner' | 'propagated'>

/**
 * Owners without pods first, those that keep some pods serving before those with a gap, and last
 * those that are deleted: a fault in the cluster shows where it costs least.
 */
function rank({ owner, draft }: { owner: Owner; draft: Draft }): number {
  if (draft.action === 'wait') return 0
  if (owner.kind === 'CronJob') return 1
  if (draft.action === 'recreate') return 4
  if (draft.action === 'leave') return 5
  return hasGap(owner) ? 3 : 2
}

const order = (a: Owner, b: Owner): number => {
  const [left, right] = [a, b].map(({ namespace, name, kind }) => `${namespace}/${name}/${kind}`)
  return (left ?? '') < (right ?? '') ? -1 : 1
}

function draftOf(owner: Owner, state: ClusterState, choices: PlanChoices): Draft {
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
  const keptOff = choices.keepOff.includes(`${namespace}/${name}`)
  const isMixed = standard.length > 0 && !isHostNetwork
  const intent: Intent =
    keptOff || (isMixed && choices.mixed === 'keep-off') ? 'keep-off' : 'host-network'
  const budgets = state.budgets.filter(
    (budget) =>
      budget.namespace === namespace &&
      owner.pods.some(({ labels }) => labelSelectorMatches(budget.selector, texts(labels))),
  )
  const options = {
    intent,
    nodeSelector: intent === 'keep-off' ? {} : placeOf(owner, template, state.nodes, standard),
    oneAtATime: budgets.length > 0,
  }
  const isMade = kind === 'Pod' || kind === 'Job'
  const isDone =
    isHostNetwork || (intent === 'keep-off' && !isMade && affinityKeptOff(template) === undefined)
  const patch = isMade || isDone ? undefined : patchOf(object, options)
  const manifest = isMade && !isDone ? recreated(object, options) : undefined
  const exhausted = budgets.filter(({ allowed }) => allowed < 1)
  const after = patch?.after ?? object
  const notes = notesOn(owner, { template, after, intent, budgets: exhausted, nodes: state.nodes })
  const common = { intent, notes, ...(patch && { patch }), ...(manifest && { manifest }) }
  if (isDone) {
    const reasons = kind === 'CronJob' ? ['its running Jobs end by themselves'] : stuckFor(owner)
    return { ...common, action: reasons.length > 0 ? 'leave' : 'wait', reasons }
  }
  const reasons = reasonsToLeave(owner, { template, intent, isMixed }, choices)
  const action = reasons.length > 0 ? 'leave' : isMade ? 'recreate' : 'patch'
  return { ...common, action, reasons }
}

/** Where pods stay on the nodes that they are on, if they could go elsewhere. */
function placeOf(
  { pods }: Owner,
  template: JsonObject,
  nodes: readonly SchedulableNode[],
  standard: readonly PodFacts[],
): Readonly<Record<string, string>> {
  const spec = objectAt(template, 'spec')
  const strays = nodes.some((node) => !isOnHost(node) && affinityAdmits(spec, node))
  if (!strays || standard.length > 0) return {}
  const names = new Set(pods.map(({ node }) => node))
  const its = nodes.filter(({ name }) => names.has(name))
  if (its.length > 0 && its.every(isOnHost)) return { [hostNetworkLabel]: 'true' }
  const pools = new Set(its.map(({ labels }) => labels[nodePoolLabel] ?? ''))
  const [pool = ''] = pools
  return pools.size === 1 && pool !== '' ? { [nodePoolLabel]: pool } : {}
}

const isOnHost = ({ labels }: SchedulableNode): boolean => labels[hostNetworkLabel] === 'true'

/** Blocks steps that cannot work, by lint's rules on the patched object. */
function linted(owner: Owner, draft: Draft, { context }: ClusterState): Step {
  const propagated = owner.pods.filter((pod) => pod.propagated).length
  const after = draft.patch?.after ?? draft.manifest
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
