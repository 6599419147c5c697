import { affinityAdmits, type SelectableNode } from '../../test/kit/node-selector.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { valueAt, listAt, objectAt } from '../../src/api/kube/json-at.ts'
import { type Arm, pool, type Propagation } from './arms.ts'
import {
  counted,
  type Expected,
  isRunning,
  networkOf,
  type Outcome,
  type Remark,
  type ReportedState,
} from './outcome.ts'
import { meantFor, podOf, type Program, type Workload } from './workloads.ts'

interface ModelNode {
  readonly name: string
  /** Whether it is of the host-network pool. */
  readonly ofPool: boolean
  readonly podNetwork: boolean
}

/**
 * A pod on its way: from admission to the scheduler, to the kubelet, which may refuse it, to a
 * container that has its port or not.
 */
interface ModelPod {
  readonly program: Program
  /** As the API has it. */
  readonly pod: JsonObject
  readonly isNew: boolean
  node?: ModelNode
  /** Whether the kubelet is shown the host's network although the API says otherwise. */
  propagated: boolean
  hasRun: boolean
  outcome: Outcome
}

/**
 * What becomes of a workload's pods under an arm, on two nodes or, where pools are mixed, three,
 * once all has settled: as admission, the scheduler's filters (NodeAffinity, NodePorts), the hub's
 * filter, the kubelet's admission (NodePorts again, on what it is shown), the sandbox and the
 * kernel's bind decide.
 */
export function modelled(arm: Arm, workload: Workload): Expected {
  const all = (workload.inPlace ? everyChoice : [[]]).map((choices) => {
    const model = new Model(arm, workload, choices)
    model.begin()
    model.go()
    return model.result()
  })
  const [first, ...others] = [...new Map(all.map((each) => [JSON.stringify(each), each])).values()]
  if (!first) throw new Error('a model has a result')
  return { ...first, ...(others.length > 0 && { others }) }
}

/** To which of two nodes that are as good the scheduler puts each of two pods. */
const everyChoice: readonly (readonly number[])[] = [
  [0, 0],
  [0, 1],
  [1, 0],
  [1, 1],
]

/** The same before anything happens to what has settled. */
export function modelledBefore(arm: Arm, workload: Workload): Expected {
  const model = new Model(arm, workload)
  model.begin()
  return model.result()
}

/** Those that do not come late. */
export const early = ({ programs }: Workload): readonly Program[] =>
  programs.filter(({ late }) => late !== true)

class Model {
  readonly #arm: Arm
  readonly #workload: Workload
  readonly #nodes: readonly ModelNode[]
  #pods: ModelPod[] = []
  #propagation: Propagation
  #rebooted = false
  /** Of nodes that are as good for a pod of an update, which one it gets. */
  readonly #choices: number[]

  constructor(arm: Arm, workload: Workload, choices: readonly number[] = []) {
    this.#choices = [...choices]
    this.#arm = arm
    this.#workload = workload
    this.#propagation = arm.propagation
    const ofArm = { ofPool: arm.hostNetworkNodes, podNetwork: arm.podNetwork }
    this.#nodes = [
      { name: 'node-0', ...ofArm },
      { name: 'node-1', ...ofArm },
      ...(workload.mixed ? [{ name: 'node-2', ofPool: false, podNetwork: true }] : []),
    ]
  }

  begin(): void {
    for (const [at, program] of early(this.#workload).entries()) this.#arrive(program, { at })
    this.#settle()
  }

  /** What happens then. */
  go(): void {
    switch (this.#workload.happens) {
      case 'one ends': {
        const ending = endingOf(this.#pods)
        this.#pods = this.#pods.filter((pod) => pod !== ending)
        break
      }
      case 'update':
        if (this.#workload.inPlace) this.#updateInPlace()
        else this.#update()
        break
      case 'reboot':
        this.#rebooted = true
        break
      case 'switch off':
        this.#propagation = 'off'
        // Without its filter that hub shows what the API says, of pods that run, too: their kubelet
        // makes them anew.
        if (this.#arm.hub === 'yurthub') for (const pod of this.#pods) pod.propagated = false
        break
      case undefined:
    }
    for (const program of this.#workload.programs) if (program.late) this.#arrive(program)
    this.#settle()
  }

  result(): Expected {
    return counted(
      this.#pods.map((pod) => ({
        outcome: pod.outcome,
        ...saidOf(pod),
        misrepresented: runs(pod) && onHost(pod) !== saysHostNetwork(pod),
        remarks: this.#remarksOn(pod),
      })),
    )
  }

  #arrive(program: Program, { at = 0, isNew = false } = {}): ModelPod {
    const written = this.#arm.written(podOf(program))
    const node = this.#workload.owner === 'DaemonSet' ? this.#nodes[at] : undefined
    const pod = this.#arm.admitted(node ? meantFor(written, node.name) : written)
    const refused = this.#workload.baseline && !meetsBaseline(pod)
    const arrived: ModelPod = {
      program,
      pod,
      isNew,
      propagated: false,
      hasRun: false,
      outcome: refused ? 'Refused' : 'Unschedulable',
    }
    this.#pods.push(arrived)
    return arrived
  }

  #settle(): void {
    for (const pod of this.#pods) {
      if (pod.outcome === 'Refused') continue
      if (pod.node === undefined) this.#schedule(pod)
      if (pod.node !== undefined) this.#show(pod)
    }
    for (const pod of this.#pods) {
      if (pod.node !== undefined) pod.outcome = this.#run(pod)
      pod.hasRun ||= runs(pod)
    }
  }

  /** To the node with the fewest pods of those that pass its filters. */
  #schedule(pod: ModelPod): void {
    const on = (node: ModelNode) => this.#pods.filter((other) => other.node === node)
    const fitting = this.#nodes.filter(
      (node) =>
        affinityAdmits(objectAt(pod.pod, 'spec'), labelled(node)) &&
        !on(node).some((other) => conflict(hostPortsOf(pod.pod), hostPortsOf(other.pod))),
    )
    const fewest = Math.min(...fitting.map((node) => on(node).length))
    const best = fitting.filter((node) => on(node).length === fewest)
    const chosen = best[pod.isNew && best.length > 1 ? (this.#choices.shift() ?? 0) : 0]
    if (chosen) pod.node = chosen
  }

  /** What the hub shows the kubelet of it, for good. */
  #show(pod: ModelPod): void {
    const isOfPool = pod.node?.ofPool === true && !saysHostNetwork(pod)
    pod.propagated ||= isOfPool && this.#propagation === 'on'
  }

  #run(pod: ModelPod): Outcome {
    const others = this.#neighbours(pod)
    // Admission counts what the kubelet is shown: propagation adds no host ports.
    const admitted = others.filter(({ outcome }) => outcome !== 'Failed')
    if (admitted.some((other) => conflict(hostPortsOf(pod.pod), hostPortsOf(other.pod))))
      return 'Failed'
    if (!onHost(pod)) return pod.node?.podNetwork === true ? 'Serving' : 'Stuck'
    const beside = others.filter(
      (other) => onHost(other) && other.program.listens === pod.program.listens,
    )
    if (pod.program.ifTaken === 'shares') return beside.length > 0 ? 'Shared' : 'Serving'
    if (!beside.some(({ outcome }) => outcome === 'Serving')) return 'Serving'
    return pod.program.ifTaken === 'waits' ? 'NotServing' : 'CrashLoop'
  }

  /**
   * One more pod at a time; where it serves, one of the former template ends, first that on its
   * node. The scheduler still counts that when it places the next one.
   */
  #update(): void {
    let ends: ModelPod | undefined
    for (const program of this.#workload.programs) {
      const added = this.#arrive(program, { isNew: true })
      if (added.outcome !== 'Refused') this.#schedule(added)
      this.#pods = this.#pods.filter((pod) => pod !== ends)
      this.#settle()
      if (added.outcome !== 'Serving') return
      const former = this.#pods.filter(({ isNew }) => !isNew)
      ends = former.find(({ node }) => node === added.node) ?? former[0]
    }
    this.#pods = this.#pods.filter((pod) => pod !== ends)
  }

  /** One ends first, and counts until its successor was placed. Where that serves, the next. */
  #updateInPlace(): void {
    for (const program of this.#workload.programs) {
      const ends = this.#pods.find(({ isNew }) => !isNew)
      const added = this.#arrive(program, { isNew: true })
      if (added.outcome !== 'Refused') this.#schedule(added)
      this.#pods = this.#pods.filter((pod) => pod !== ends)
      this.#settle()
      if (added.outcome !== 'Serving') return
    }
  }

  #neighbours(pod: ModelPod): readonly ModelPod[] {
    return this.#pods.filter((other) => other !== pod && other.node === pod.node)
  }

  #remarksOn(pod: ModelPod): readonly Remark[] {
    const remarks: Remark[] = []
    // Its probe, if it has one, is answered by who has the port.
    if (pod.outcome === 'NotServing') remarks.push('Ready without serving')
    if (pod.program.gives !== undefined && runs(pod) && onHost(pod))
      remarks.push("changed the node's network")
    if (pod.isNew && pod.outcome === 'Serving') remarks.push('of the new template')
    // A kubelet since 1.35 waits for a watch to begin with a list, which that hub cannot give it.
    const serves = pod.outcome === 'Serving' && this.#arm.hub === 'nodehub'
    if (this.#rebooted && serves) remarks.push('served without a link')
    return remarks
  }
}

/**
 * The pod that is deleted: one that serves beside another, else one that serves, else the first.
 */
export function endingOf<Pod extends Pick<ModelPod, 'outcome'> & { readonly node?: unknown }>(
  pods: readonly Pod[],
): Pod | undefined {
  const serving = pods.filter(({ outcome }) => outcome === 'Serving')
  const crowded = serving.find((pod) =>
    pods.some((other) => other !== pod && other.node === pod.node),
  )
  return crowded ?? serving[0] ?? pods[0]
}

const saysHostNetwork = ({ pod }: ModelPod): boolean => valueAt(pod, 'spec', 'hostNetwork') === true

const onHost = (pod: ModelPod): boolean => pod.propagated || saysHostNetwork(pod)

const runs = ({ outcome }: ModelPod): boolean => isRunning(outcome)

function saidOf(pod: ModelPod): { said?: ReportedState } {
  if (pod.outcome === 'Refused') return {}
  // The phase of a pod that once ran stays, whatever becomes of its sandbox.
  const waits = (pod.outcome === 'Stuck' && !pod.hasRun) || pod.outcome === 'Unschedulable'
  const phase = pod.outcome === 'Failed' ? 'Failed' : waits ? 'Pending' : 'Running'
  return { said: `${phase} on ${networkOf(saysHostNetwork(pod))}` }
}

const hostPortsOf = (pod: JsonObject): readonly Json[] =>
  listAt(pod, 'spec', 'containers')
    .flatMap((container) => listAt(container, 'ports'))
    .map((port) => valueAt(port, 'hostPort') ?? 0)
    .filter((port) => port !== 0)

/** The Pod Security Standard baseline, as far as arms and workloads differ in it. */
const meetsBaseline = (pod: JsonObject): boolean =>
  valueAt(pod, 'spec', 'hostNetwork') !== true && hostPortsOf(pod).length === 0

const conflict = (a: readonly Json[], b: readonly Json[]): boolean =>
  a.some((port) => b.includes(port))

/** The labels that admission gives a node of the arm. */
const labelled = ({ name, ofPool }: ModelNode): SelectableNode => ({
  name,
  labels: ofPool ? { [hostNetworkLabel]: 'true', [nodePoolLabel]: pool } : {},
})
