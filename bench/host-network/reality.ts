import { mkdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loopbackName, loopbackNetwork } from '../../src/join/loopback.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../src/kube/node-pool.ts'
import type { Json, JsonObject } from '../../src/kube/json.ts'
import { at, listAt, objectAt, textAt } from '../../src/kube/json-at.ts'
import { makeHostNetworkPool } from '../../test/cluster/host-network-pool.ts'
import { nodeReady } from '../../test/cluster/seen.ts'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import { type NodeNetwork, openNodeNetwork } from '../../test/kit/cluster/node-network.ts'
import { plainNode } from '../../test/kit/cluster/plain-node.ts'
import { until } from '../../test/kit/cluster/until.ts'
import type { Scope } from '../../test/kit/cluster/workspace.ts'
import { type ControlPlane, nodeSubject, startControlPlane } from '../../test/kit/control-plane.ts'
import { freePort } from '../../test/kit/free-port.ts'
import { type Kubelet, startKubelet } from '../../test/kit/kubelet.ts'
import type { Arm } from './arms.ts'
import { modelled } from './model.ts'
import { counted, type Outcome, type Result, sameResult } from './outcome.ts'
import { podOf, type Workload } from './workloads.ts'

const pool = 'compared'
const pods = '/api/v1/namespaces/default/pods'

interface RealNode {
  readonly name: string
  readonly network: NodeNetwork
  readonly kubelet: Kubelet
}

/** So many looks in a row have to find the same: some seconds. */
const looks = 10

interface SeenOnNode {
  readonly name: string
  /** '' where it is on none. */
  readonly node: string
  readonly outcome: Outcome
  readonly misrepresented: boolean
  readonly restarts: number
}

/** A row as it was seen. */
export interface Observed extends Result {
  /** From the creation of the pods until all had come to what they stayed. */
  readonly settledMs: number
  readonly restarts: number
  readonly events: number
}

/** A control plane, and nodes that arms are tried on; all end with the scope. */
export class Reality {
  readonly #plane: ControlPlane
  readonly #nodes: readonly RealNode[]

  constructor(plane: ControlPlane, nodes: readonly RealNode[]) {
    this.#plane = plane
    this.#nodes = nodes
  }

  /**
   * Creates a workload's pods as the arm has them, and looks at them until they have stayed as they are for some seconds. Where that is not as
   * `expected`, it looks on for `seconds`: what is still to come may come late. Then removes them.
   */
  async observe(arm: Arm, workload: Workload, expected: Result, seconds = 90): Promise<Observed> {
    const begun = performance.now()
    for (const [number, program] of workload.programs.entries()) {
      const node = workload.aNodeEach ? this.#nodes[number]?.name : undefined
      const pod = arm.admitted(arm.written(podOf(program, node)))
      const { status, body } = await this.#plane.admin.post(pods, pod)
      if (status !== 201) throw new Error(`a pod was refused: ${status} ${body.toString()}`)
    }
    const before = workload.oneEnds ? modelled(arm, { ...workload, oneEnds: false }) : expected
    let seen = await this.#settled(workload, before, seconds)
    if (workload.oneEnds) {
      await this.#remove(this.#ending(seen))
      seen = await this.#settled(workload, expected, seconds)
    }
    const settledMs = performance.now() - begun
    const events = (await this.#list('/api/v1/namespaces/default/events')).length
    await this.#clear()
    const restarts = seen.reduce((sum, each) => sum + each.restarts, 0)
    return { ...counted(seen), settledMs, restarts, events }
  }

  /** Takes its nodes out of the cluster, so that no pod of another arm is put on them. */
  async retire(): Promise<void> {
    for (const { name, kubelet } of this.#nodes) {
      await kubelet.daemon.kill()
      await this.#plane.admin.send('DELETE', `/api/v1/nodes/${name}`)
    }
  }

  /** The pod that is deleted, by the same rule as in the model. */
  #ending(seen: readonly SeenOnNode[]): string {
    const serving = seen.filter(({ outcome }) => outcome === 'Serving')
    const crowded = serving.find((pod) =>
      seen.some((other) => other !== pod && other.node === pod.node),
    )
    return (crowded ?? serving[0] ?? seen[0])?.name ?? ''
  }

  async #settled(
    workload: Workload,
    expected: Result,
    seconds: number,
  ): Promise<readonly SeenOnNode[]> {
    const deadline = performance.now() + seconds * 1000
    let last = ''
    let same = 0
    return until(
      'the pods to settle',
      async () => {
        const found = await this.#list(pods)
        const seen = await Promise.all(found.map((pod) => this.#look(pod, workload)))
        const known = seen.filter((each) => each !== undefined)
        const text = seen.map((each) => (each ? `${each.name} ${each.outcome}` : '?')).join()
        same = text === last && known.length === seen.length ? same + 1 : 0
        last = text
        if (same < looks) return false
        return (sameResult(counted(known), expected) || performance.now() > deadline) && known
      },
      { seconds: seconds * 2, describe: () => last },
    )
  }

  async #look(pod: Json, { programs }: Workload): Promise<SeenOnNode | undefined> {
    const name = textAt(pod, 'metadata', 'name')
    const node = this.#nodes.find((each) => each.name === textAt(pod, 'spec', 'nodeName'))
    const program = programs.find((each) => each.name === name)
    if (program === undefined) return undefined
    const [container] = listAt(pod, 'status', 'containerStatuses')
    const restarts = Number(at(container, 'restartCount') ?? 0)
    const outcome = await this.#outcomeOf(pod, node, program.listens)
    if (outcome === undefined) return undefined
    const says = at(pod, 'spec', 'hostNetwork') === true
    const runs = node && (await sharesNetwork(node, name))
    const misrepresented = runs !== undefined && outcome !== 'Stuck' && runs !== says
    return { name, node: node?.name ?? '', outcome, misrepresented, restarts }
  }

  /** `undefined` where it has not come to anything yet. */
  async #outcomeOf(
    pod: Json,
    node: RealNode | undefined,
    port: number,
  ): Promise<Outcome | undefined> {
    const name = textAt(pod, 'metadata', 'name')
    if (node === undefined) {
      const unschedulable = listAt(pod, 'status', 'conditions').some(
        (condition) => textAt(condition, 'reason') === 'Unschedulable',
      )
      return unschedulable ? 'Unschedulable' : undefined
    }
    if (textAt(pod, 'status', 'phase') === 'Failed') return 'Failed'
    const [container] = listAt(pod, 'status', 'containerStatuses')
    const waiting = textAt(container, 'state', 'waiting', 'reason')
    if (waiting === 'CrashLoopBackOff') return 'CrashLoop'
    // Between two tries: nothing is settled by one that has just begun.
    if (Object.keys(objectAt(container, 'state', 'terminated')).length > 0) {
      return Number(at(container, 'restartCount') ?? 0) > 0 ? 'CrashLoop' : undefined
    }
    if (waiting === 'ContainerCreating') {
      const failed = (await this.#list('/api/v1/namespaces/default/events')).some(
        (event) =>
          textAt(event, 'reason') === 'FailedCreatePodSandBox' &&
          textAt(event, 'involvedObject', 'uid') === textAt(pod, 'metadata', 'uid'),
      )
      return failed ? 'Stuck' : undefined
    }
    if (Object.keys(objectAt(container, 'state', 'running')).length === 0) return undefined
    const own = await sharesNetwork(node, name)
    const address = own === true ? '127.0.0.1' : textAt(pod, 'status', 'podIP')
    const answer = await node.network.fetch(`http://${address}:${port}/index.html`)
    if (answer?.trim() === name) return 'Serving'
    // It has just been started again, to end again.
    return Number(at(container, 'restartCount') ?? 0) > 0 ? 'CrashLoop' : 'NotServing'
  }

  async #list(path: string): Promise<readonly Json[]> {
    const list = JSON.parse((await this.#plane.admin.get(path)).body.toString()) as JsonObject
    return listAt(list, 'items')
  }

  async #remove(name: string): Promise<void> {
    await this.#plane.admin.send('DELETE', `${pods}/${name}`)
    await until(`${name} to be gone`, async () =>
      (await this.#list(pods)).every((pod) => textAt(pod, 'metadata', 'name') !== name),
    )
  }

  async #clear(): Promise<void> {
    await this.#plane.admin.send('DELETE', `${pods}?gracePeriodSeconds=1`)
    await until(
      'everything to be gone',
      async () => {
        const running = await Promise.all(
          this.#nodes.map(({ kubelet }) => kubelet.runtime.running()),
        )
        return (await this.#list(pods)).length === 0 && running.flat().length === 0
      },
      { seconds: 90 },
    )
    await this.#plane.admin.send('DELETE', '/api/v1/namespaces/default/events')
  }
}

/** Whether a pod's sandbox is in the network of its node; `undefined` where it has none. */
async function sharesNetwork({ kubelet }: RealNode, pod: string): Promise<boolean | undefined> {
  const running = await kubelet.runtime.running()
  const sandbox = running.find((each) => each.kind === 'sandbox' && each.pod === pod)
  if (sandbox === undefined) return undefined
  const [its, nodes] = [sandbox.processId, kubelet.daemon.id].map((id) => networkOf(id))
  return its === undefined ? undefined : its === nodes
}

function networkOf(id: number): string | undefined {
  try {
    return readlinkSync(`/proc/${id}/ns/net`)
  } catch {
    return undefined
  }
}

export const startRealPlane = async (t: Scope): Promise<ControlPlane> => {
  const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
  await makeHostNetworkPool(plane, pool)
  return plane
}

/** Two nodes, each in a network of its own, as an arm has them; named so that no two arms share one. */
export async function startReality(
  t: Scope,
  plane: ControlPlane,
  kind: Pick<Arm, 'hostNetworkNodes' | 'propagates'>,
): Promise<Reality> {
  const names = [0, 1].map(
    (number) => `${kind.propagates ? 'legacy' : kind.hostNetworkNodes ? 'host' : 'pod'}-${number}`,
  )
  const nodes: RealNode[] = []
  for (const name of names) nodes.push(await startNode(t, plane, name, kind))
  for (const { name } of nodes) await nodeReady(plane.admin, name)
  return new Reality(plane, nodes)
}

async function startNode(
  t: Scope,
  plane: ControlPlane,
  nodeName: string,
  { hostNetworkNodes, propagates }: Pick<Arm, 'hostNetworkNodes' | 'propagates'>,
): Promise<RealNode> {
  const network = await openNodeNetwork(t)
  await network.reach(Number(new URL(plane.url).port))
  const subject = nodeSubject(nodeName)
  const kubeconfig = propagates
    ? plane.kubeconfig(subject, ...(await startPropagatingHub(plane, network, nodeName)))
    : plane.kubeconfig(subject)
  const networkFolder = network.workspace.file('net.d')
  mkdirSync(networkFolder)
  writeFileSync(join(networkFolder, loopbackName), loopbackNetwork)
  const labels = `${nodePoolLabel}=${pool},${hostNetworkLabel}=true`
  const kubelet = await startKubelet(t, {
    nodeName,
    kubeconfig,
    clientCa: plane.pki.ca.certificate,
    network,
    ...(hostNetworkNodes && { networkFolder, flags: [`--node-labels=${labels}`] }),
  })
  return { name: nodeName, network, kubelet }
}

/** The address of its TLS proxy, as its node has it, and the file of who vouches for it. */
async function startPropagatingHub(
  plane: ControlPlane,
  network: NodeNetwork,
  nodeName: string,
): Promise<[string, string]> {
  const [securePort, servePort] = [await freePort(), await freePort()]
  const root = network.workspace.file('hub')
  const [node, script] = plainNode(
    join(import.meta.dirname, '..', '..', 'src', 'main.ts'),
    'start',
    `--server-addr=${plane.url}`,
    `--kubeconfig=${plane.kubeconfig(nodeSubject(nodeName))}`,
    `--node-name=${nodeName}`,
    `--nodepool-name=${pool}`,
    '--host-network-node',
    '--plain-proxy=false',
    '--host-network-propagation=on',
    `--proxy-secure-port=${securePort}`,
    `--serve-port=${servePort}`,
    `--root-dir=${root}`,
  )
  const [command, args] = network.inside(node, script)
  await new Daemon(network.workspace, 'hub', {
    command,
    args,
    ready: async () => (await network.fetch(`http://127.0.0.1:${servePort}/readyz`)) !== undefined,
  }).start()
  return [`https://127.0.0.1:${securePort}`, join(root, 'pki', 'ca.crt')]
}
