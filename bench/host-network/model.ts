import { affinityAdmits, type SelectableNode } from '../../src/api/kube/scheduling.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { valueAt, listAt, objectAt } from '../../src/api/kube/json-at.ts'
import { type Arm, pool } from './arms.ts'
import { counted, networkOf, type Outcome, type Result, type ReportedState } from './outcome.ts'
import { meantFor, podOf, type Program, type Workload } from './workloads.ts'

interface ModelNode {
  readonly name: string
  readonly hostNetwork: boolean
}

/**
 * A pod on its way: from the scheduler to the kubelet, which may refuse it, to a container that has
 * its port or not.
 */
interface ModelPod {
  readonly program: Program
  /** As the API has it. */
  readonly pod: JsonObject
  node?: ModelNode
  outcome: Outcome
}

/**
 * What becomes of a workload's pods on `count` nodes under an arm, once all has settled: as the
 * scheduler's filters (NodeAffinity, NodePorts), the kubelet's admission (NodePorts again, on what
 * it is shown), the sandbox and the kernel's bind decide.
 */
export function modelled(arm: Arm, workload: Workload, count = 2): Result {
  const nodes = Array.from({ length: count }, (_, number) => ({
    name: `node-${number}`,
    hostNetwork: arm.hostNetworkNodes,
  }))
  let pods = workload.programs.map((program, number): ModelPod => {
    const written = arm.written(podOf(program))
    const node = workload.daemonSet && nodes[number]
    return {
      program,
      pod: arm.admitted(node ? meantFor(written, node.name) : written),
      outcome: 'Unschedulable',
    }
  })
  settle(arm, pods, nodes)
  if (workload.oneEnds) {
    const ending = endingOf(pods)
    pods = pods.filter((pod) => pod !== ending)
    settle(arm, pods, nodes)
  }
  return counted(
    pods.map((pod) => ({
      ...pod,
      said: saidOf(pod),
      misrepresented: isMisrepresented(arm, pod),
    })),
  )
}

/**
 * The pod that is deleted: one that serves beside another, else one that serves, else the first.
 */
function endingOf(pods: readonly ModelPod[]): ModelPod | undefined {
  const serving = pods.filter(({ outcome }) => outcome === 'Serving')
  const crowded = serving.find((pod) =>
    pods.some((other) => other !== pod && other.node === pod.node),
  )
  return crowded ?? serving[0] ?? pods[0]
}

function settle(arm: Arm, pods: readonly ModelPod[], nodes: readonly ModelNode[]): void {
  for (const pod of pods) {
    if (pod.node === undefined) schedule(pod, pods, nodes)
    if (pod.node !== undefined) pod.outcome = run(arm, pod, pods)
  }
}

/** To the node with the fewest pods of those that pass its filters. */
function schedule(pod: ModelPod, pods: readonly ModelPod[], nodes: readonly ModelNode[]): void {
  const on = (node: ModelNode): readonly ModelPod[] => pods.filter((other) => other.node === node)
  const fitting = nodes.filter(
    (node) =>
      affinityAdmits(objectAt(pod.pod, 'spec'), labelled(node)) &&
      !on(node).some((other) => conflict(hostPortsOf(pod.pod), hostPortsOf(other.pod))),
  )
  const [best] = fitting.toSorted((a, b) => on(a).length - on(b).length)
  if (best) pod.node = best
}

function run(arm: Arm, pod: ModelPod, pods: readonly ModelPod[]): Outcome {
  const others = pods.filter((other) => other !== pod && other.node === pod.node)
  const shown = shownHostNetwork(arm, pod)
  // Admission counts what the kubelet is shown: the legacy filter adds no host ports.
  const admitted = others.filter(({ outcome }) => outcome !== 'Failed')
  if (admitted.some((other) => conflict(hostPortsOf(pod.pod), hostPortsOf(other.pod))))
    return 'Failed'
  if (!shown) return pod.node?.hostNetwork ? 'Stuck' : 'Serving'
  const taken = others.some(
    (other) =>
      other.outcome === 'Serving' &&
      shownHostNetwork(arm, other) &&
      other.program.listens === pod.program.listens,
  )
  if (!taken) return 'Serving'
  return pod.program.waits ? 'NotServing' : 'CrashLoop'
}

const saysHostNetwork = ({ pod }: ModelPod): boolean => valueAt(pod, 'spec', 'hostNetwork') === true

const shownHostNetwork = (arm: Arm, pod: ModelPod): boolean =>
  arm.propagates || saysHostNetwork(pod)

function saidOf(pod: ModelPod): ReportedState {
  const waits = pod.outcome === 'Stuck' || pod.outcome === 'Unschedulable'
  const phase = pod.outcome === 'Failed' ? 'Failed' : waits ? 'Pending' : 'Running'
  return `${phase} on ${networkOf(saysHostNetwork(pod))}`
}

function isMisrepresented(arm: Arm, pod: ModelPod): boolean {
  const runs = ['Serving', 'NotServing', 'CrashLoop'].includes(pod.outcome)
  return runs && shownHostNetwork(arm, pod) !== saysHostNetwork(pod)
}

const hostPortsOf = (pod: JsonObject): readonly Json[] =>
  listAt(pod, 'spec', 'containers')
    .flatMap((container) => listAt(container, 'ports'))
    .map((port) => valueAt(port, 'hostPort') ?? 0)
    .filter((port) => port !== 0)

const conflict = (a: readonly Json[], b: readonly Json[]): boolean =>
  a.some((port) => b.includes(port))

/** The labels that admission gives a node of the arm. */
const labelled = ({ name, hostNetwork }: ModelNode): SelectableNode => ({
  name,
  labels: hostNetwork ? { [hostNetworkLabel]: 'true', [nodePoolLabel]: pool } : {},
})
