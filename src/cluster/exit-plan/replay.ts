import type { JsonObject } from '../../api/kube/json.ts'
import { objectAt, valueAt, withAt } from '../../api/kube/json-at.ts'
import { portName } from '../../api/kube/host-network-pod.ts'
import { affinityAdmits, taintsTolerated, type SchedulableNode } from '../../api/kube/scheduling.ts'
import { podsOf, portsOf } from '../../node/lint/pod.ts'
import { keptOffHostNetwork } from '../admission/pod.ts'
import type { ClusterState, PodFacts } from './cluster-state.ts'
import { templateIn, type Intent } from './patch.ts'

/** The forecast for an owner's pods once its patch is applied. */
export interface Forecast {
  /** Pods that the controller will want. */
  readonly wanted: number
  /** Pods for which the scheduler finds no node, with the obstacle. */
  readonly pending: number
  readonly because: readonly string[]
  /**
   * Pods that listen on a port of the owner's without declaring it, on nodes where the scheduler
   * may put one of its own: `shop/web-1 has 8080/TCP on edge-1`.
   */
  readonly clashes: readonly string[]
}

/** An owner as it is patched, and the pods that it has now. */
interface Patched {
  readonly after: JsonObject
  readonly intent: Intent
  readonly pods: readonly PodFacts[]
  readonly happens: boolean
}

interface Occupant {
  readonly name: string
  readonly declared: readonly string[]
  readonly listens: readonly string[]
}

/** Messages name so many; the rest is counted. */
const mostNamed = 5

/**
 * The DaemonSet controller's own tolerations (pkg/controller/daemon/util), for pods on the host's
 * network.
 */
const daemonTolerations = [
  'not-ready',
  'unreachable',
  'disk-pressure',
  'memory-pressure',
  'pid-pressure',
  'unschedulable',
  'network-unavailable',
].map((name) => ({ key: `node.kubernetes.io/${name}`, operator: 'Exists' }))

/**
 * The cluster as the scheduler and the kubelets see it while an exit plan is applied: the filters
 * NodeAffinity, TaintToleration and NodePorts, which the kubelet's admission repeats, and the
 * kernel's bind. Resources are not counted: pods take the places of pods like them.
 */
export class Replay {
  readonly #nodes: readonly SchedulableNode[]
  readonly #on = new Map<string, Map<string, Occupant>>()

  constructor({ nodes, pods }: Pick<ClusterState, 'nodes' | 'pods'>) {
    this.#nodes = nodes
    for (const pod of pods.filter(({ ended }) => !ended))
      this.#put(pod.node, pod.uid, occupant(pod))
  }

  #put(node: string, uid: string, pod: Occupant): void {
    const there = this.#on.get(node) ?? new Map<string, Occupant>()
    there.set(uid, pod)
    this.#on.set(node, there)
  }

  #undo(name: string, pods: readonly PodFacts[]): void {
    for (const there of this.#on.values())
      for (const uid of there.keys()) if (uid.startsWith(`${name}#`)) there.delete(uid)
    for (const pod of pods) this.#put(pod.node, pod.uid, occupant(pod))
  }

  #occupants(node: SchedulableNode): readonly Occupant[] {
    return [...(this.#on.get(node.name)?.values() ?? [])]
  }

  /**
   * Puts an owner's patched pods in the places of those it has. They stay there for later calls
   * only if the change `happens` and all of them find a node.
   */
  apply(name: string, { after, intent, pods, happens }: Patched): Forecast {
    for (const { node, uid } of pods) this.#on.get(node)?.delete(uid)
    const workload = templateIn(after)?.workload ?? 'Pod'
    const pod = podOf(after, workload, intent)
    const spec = objectAt(pod, 'spec')
    const declared = podsOf(pod)
      .flatMap(portsOf)
      .filter(({ hostPort }) => hostPort > 0)
      .map(({ hostPort, protocol }) => portName({ port: hostPort, protocol }))
    const ports = [...new Set(declared)]
    const admitting = this.#nodes.filter(
      (node) => affinityAdmits(spec, node) && taintsTolerated(spec, node),
    )
    const before = new Set(pods.map(({ node }) => node))
    // Where its pods were, then where least runs.
    const inOrder = admitting
      .map((node) => ({
        node,
        load: this.#on.get(node.name)?.size ?? 0,
        had: before.has(node.name),
      }))
      .toSorted((a, b) => Number(b.had) - Number(a.had) || a.load - b.load)
      .map(({ node }) => node)
    const wanted = wantedPods(after, workload, admitting.length, pods.length)
    const clashes = new Set<string>()
    const because = new Set<string>()
    let placed = 0
    for (const node of inOrder) {
      const others = this.#occupants(node)
      const holder = others.find((other) => other.declared.some((port) => ports.includes(port)))
      if (holder) {
        because.add(`${holder.name} has ${shared(holder.declared, ports)} on ${node.name}`)
        continue
      }
      for (const other of others) {
        const taken = shared(other.listens, ports)
        if (taken !== '') clashes.add(`${other.name} has ${taken} on ${node.name}`)
      }
      // One of its own pods for each node, where it takes ports.
      const room = ports.length > 0 || workload === 'DaemonSet' ? 1 : Infinity
      for (let count = 0; count < room && placed < wanted; count++, placed++)
        this.#put(node.name, `${name}#${placed}`, { name, declared: ports, listens: ports })
    }
    if (!happens || placed < wanted) this.#undo(name, pods)
    const nodes = `${admitting.length} ${admitting.length === 1 ? 'node admits' : 'nodes admit'}`
    const pending = wanted - placed
    if (pending > 0) because.add(`${nodes} its pods, by labels and taints`)
    return {
      wanted,
      pending,
      because: pending > 0 ? first([...because].toReversed()) : [],
      clashes: first([...clashes]),
    }
  }
}

const occupant = ({ namespace, name, declared, listens }: PodFacts): Occupant => ({
  name: `${namespace}/${name}`,
  declared,
  listens,
})

/** A pod as the owner's controller makes it and admission leaves it. */
function podOf(after: JsonObject, workload: string, intent: Intent): JsonObject {
  const found = templateIn(after)
  const pod: JsonObject = { ...(found ? objectAt(after, ...found.path) : after), kind: 'Pod' }
  const admitted = intent === 'keep-off' ? keptOffHostNetwork(pod) : pod
  if (workload !== 'DaemonSet') return admitted
  const given = valueAt(admitted, 'spec', 'tolerations')
  const tolerations = [...(Array.isArray(given) ? given : []), ...daemonTolerations]
  return withAt(admitted, ['spec', 'tolerations'], tolerations)
}

function wantedPods(after: JsonObject, workload: string, nodes: number, now: number): number {
  if (workload === 'DaemonSet') return nodes
  if (workload === 'Deployment' || workload === 'StatefulSet') {
    const path = templateIn(after)?.path.slice(0, -1) ?? []
    // YurtAppSet makes a Deployment for each pool: it wants the pods that run now.
    if (path.length > 1) return now
    return Number(valueAt(after, ...path, 'replicas') ?? 1)
  }
  return workload === 'CronJob' ? Math.max(now, 1) : now
}

const shared = (a: readonly string[], b: readonly string[]): string =>
  a.filter((port) => b.includes(port)).join(', ')

const first = (all: readonly string[]): readonly string[] =>
  all.length <= mostNamed ? all : [...all.slice(0, mostNamed), `and ${all.length - mostNamed} more`]
