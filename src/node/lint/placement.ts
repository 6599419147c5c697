import type { Json, JsonObject } from '../../api/kube/json.ts'
import { optionalObjectAt, optionalTextAt, listAt, objectAt } from '../../api/kube/json-at.ts'
import { isEmptyTerm, requiredNodeAffinity } from '../../api/kube/node-affinity.ts'
import { isTolerated, requirementMet } from '../../api/kube/scheduling.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
import { isExcluded } from '../../api/kube/pod.ts'
import type { Context, PoolFacts } from './context.ts'
import type { PodSubject } from './pod.ts'

/** Where the scheduler may put a pod, by the labels and taints that pools give their nodes. */
export interface Placement {
  /** Known host-network pools on whose nodes it may run. */
  readonly hostNetwork: readonly string[]
  /**
   * Whether it may run on a node that is of no host-network pool: of a standard pool, or of none.
   */
  readonly standard: boolean
  /** Unknown pools that it names. Where it runs apart from the known pools is then unknown. */
  readonly unknown: readonly string[]
}

/** The labels of a node that are known; it may have others, with any value. */
interface NodeModel {
  readonly labels: ReadonlyMap<string, string | undefined>
  readonly taints: readonly JsonObject[]
}

type SchedulablePod = Pick<PodSubject, 'metadata' | 'spec'>

/**
 * Decides by nodeSelector, required node affinity, the exclude annotation and the taints of pools.
 */
export function placementOf(pod: SchedulablePod, context: Context): Placement {
  const known = [...context.pools]
  const may = (node: NodeModel): boolean => admits(pod, node)
  const named = poolsNamed(pod)
  const unknown = named.filter((name) => !context.pools.has(name))
  const standardPools = known.filter(([, facts]) => !facts.hostNetwork)
  return {
    hostNetwork: known
      .filter(([name, facts]) => facts.hostNetwork && may(nodeOf(name, facts)))
      .map(([name]) => name),
    standard:
      standardPools.some(([name, facts]) => may(nodeOf(name, facts))) ||
      (unknown.length === 0 && may(nodeOfNoPool)),
    unknown: unknown.filter((name) => may(nodeOfUnknown(name))),
  }
}

const nodeOf = (name: string, { hostNetwork, labels, taints = [] }: PoolFacts): NodeModel => ({
  labels: new Map<string, string | undefined>([
    ...Object.entries(labels ?? {}).map(
      ([key, value]) => [key, typeof value === 'string' ? value : ''] as const,
    ),
    [nodePoolLabel, name],
    [hostNetworkLabel, hostNetwork ? 'true' : undefined],
  ]),
  taints,
})

const nodeOfNoPool: NodeModel = {
  labels: new Map([nodePoolLabel, hostNetworkLabel].map((key) => [key, undefined])),
  taints: [],
}

const nodeOfUnknown = (name: string): NodeModel => ({
  labels: new Map([[nodePoolLabel, name]]),
  taints: [],
})

/** Whether selectors admit a pod to nodes of host-network pools, whatever the pool. */
export const mayRunOnHostNetwork = (spec: JsonObject): boolean =>
  admits({ metadata: {}, spec }, { labels: new Map([[hostNetworkLabel, 'true']]), taints: [] })

/** Whether the pod may run there: false only where a known fact forbids it. */
function admits(pod: SchedulablePod, node: NodeModel): boolean {
  const selector = objectAt(pod.spec, 'nodeSelector')
  for (const [key, value] of Object.entries(selector)) {
    if (node.labels.has(key) && node.labels.get(key) !== value) return false
  }
  if (isExcluded(pod) && node.labels.get(hostNetworkLabel) === 'true') return false
  const terms = requiredTerms(pod)
  if (terms !== undefined && !terms.some((term) => termMay(term, node))) return false
  return node.taints.every((taint) => !keepsOff(taint) || isTolerated(taint, pod.spec))
}

/**
 * The required terms of node affinity, of which one has to match; `undefined` where none are
 * required.
 */
export function requiredTerms(pod: Pick<PodSubject, 'spec'>): readonly Json[] | undefined {
  const required = optionalObjectAt({ spec: pod.spec }, ...requiredNodeAffinity)
  return required && listAt(required, 'nodeSelectorTerms')
}

function termMay(term: Json, node: NodeModel): boolean {
  if (isEmptyTerm(term)) return false
  return listAt(term, 'matchExpressions').every((expression) => expressionMay(expression, node))
}

function expressionMay(expression: Json, { labels }: NodeModel): boolean {
  const key = optionalTextAt(expression, 'key')
  if (key === undefined || !labels.has(key)) return true
  return requirementMet(expression, labels.get(key))
}

const keepsOff = (taint: JsonObject): boolean => taint['effect'] !== 'PreferNoSchedule'

/** The pools that nodeSelector and affinity name. */
function poolsNamed(pod: SchedulablePod): readonly string[] {
  const selected = optionalTextAt(pod.spec, 'nodeSelector', nodePoolLabel)
  const required = (requiredTerms(pod) ?? []).flatMap((term) =>
    listAt(term, 'matchExpressions').flatMap((expression) =>
      optionalTextAt(expression, 'key') === nodePoolLabel &&
      optionalTextAt(expression, 'operator') === 'In'
        ? listAt(expression, 'values').filter((value) => typeof value === 'string')
        : [],
    ),
  )
  return [...new Set([...(selected === undefined ? [] : [selected]), ...required])]
}
