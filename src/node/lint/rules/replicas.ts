import type { JsonObject } from '../../../api/kube/json.ts'
import { valueAt, optionalObjectAt, optionalTextAt } from '../../../api/kube/json-at.ts'
import type { Context } from '../context.ts'
import { documents } from '../documents.ts'
import type { Path } from '../finding.ts'
import { placementOf } from '../placement.ts'
import { portsOf, type PodSubject } from '../pod.ts'
import type { Rule } from '../rule.ts'
import { hostPortsText } from './ports.ts'

/** The desired number of pods, and its path. */
function desiredPods(pod: PodSubject): { readonly count: number; readonly path: Path } | undefined {
  const spec = optionalObjectAt(pod.owner, 'spec')
  switch (pod.kind) {
    case 'Deployment':
    case 'ReplicaSet':
    case 'StatefulSet':
    case 'ReplicationController':
      return { count: numberAt(spec, 'replicas') ?? 1, path: ['spec', 'replicas'] }
    case 'Job':
      return { count: numberAt(spec, 'parallelism') ?? 1, path: ['spec', 'parallelism'] }
    default:
      return undefined
  }
}

/** The number at this name, if there is one. */
function numberAt(spec: JsonObject | undefined, name: string): number | undefined {
  const found = spec?.[name]
  return typeof found === 'number' ? found : undefined
}

/** The number of nodes on which the pods may run, if known. */
function nodesFor(pod: PodSubject, context: Context): number | undefined {
  const { hostNetwork, standard, unknown } = placementOf(pod, context)
  // Nodes of standard pools and of no pool are not counted.
  if (standard || unknown.length > 0 || hostNetwork.length === 0) return undefined
  const counts = hostNetwork.map((name) => context.pools.get(name)?.nodes)
  return counts.reduce<number | undefined>(
    (sum, count) => (sum === undefined || count === undefined ? undefined : sum + count),
    0,
  )
}

export const morePodsThanNodes: Rule = {
  id: 'more-pods-than-nodes',
  level: 'error',
  title: 'more pods with one port than nodes',
  reason:
    'A node has each port once. The pods that are left over stay Pending, for as long as the others run.',
  document: documents.assigning,
  *checkPod(pod, context) {
    const pods = desiredPods(pod)
    const nodes = nodesFor(pod, context)
    const ports = hostPortsText(portsOf(pod))
    if (pods === undefined || nodes === undefined || ports === '' || pods.count <= nodes) return
    yield {
      path: pods.path,
      message: `${pods.count} pods that each take port ${ports} of their node, on ${nodes} ${nodes === 1 ? 'node' : 'nodes'}: ${pods.count - nodes} will stay Pending`,
    }
  },
}

export const rolloutStalls: Rule = {
  id: 'rollout-stalls',
  level: 'warning',
  title: 'a rolling update that finds no node with a free port',
  reason:
    'By default a Deployment of less than four pods ends none before a new one is ready, and the new one cannot be scheduled while the old ones have its port on every node: the update never ends.',
  document: documents.rolling,
  *checkPod(pod, context) {
    if (pod.kind !== 'Deployment') return
    const pods = desiredPods(pod)
    const nodes = nodesFor(pod, context)
    const ports = hostPortsText(portsOf(pod))
    if (pods === undefined || nodes === undefined || ports === '') return
    if (pods.count === 0 || pods.count !== nodes || mayBeMissing(pod.owner, pods.count) > 0) return
    yield {
      path: optionalObjectAt(pod.owner, 'spec', 'strategy') ? ['spec', 'strategy'] : pods.path,
      message: `every one of the ${nodes} nodes has port ${ports} taken, and no pod may be missing during an update: set strategy.rollingUpdate.maxUnavailable to 1 or more (and maxSurge to 0), or type Recreate`,
    }
  },
}

/**
 * How many pods a rolling update may end before others are ready; percents are rounded down
 * (pkg/controller/deployment/util).
 */
function mayBeMissing(deployment: JsonObject, replicas: number): number {
  if (optionalTextAt(deployment, 'spec', 'strategy', 'type') === 'Recreate') return replicas
  const given = valueAt(deployment, 'spec', 'strategy', 'rollingUpdate', 'maxUnavailable') ?? '25%'
  if (typeof given === 'number') return given
  const percent = typeof given === 'string' ? /^(\d+)%$/.exec(given)?.[1] : undefined
  return Math.floor((Number(percent ?? 0) * replicas) / 100)
}
