import { execFileSync } from 'node:child_process'
import { mkdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loopbackName, loopbackNetwork } from '../../src/node/join/loopback.ts'
import { nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import type { RunningContainer } from '../../test/kit/cluster/containerd.ts'
import type { Daemon } from '../../test/kit/cluster/daemon.ts'
import { type NodeNetwork, openNodeNetwork } from '../../test/kit/cluster/node-network.ts'
import type { Scope } from '../../test/kit/cluster/workspace.ts'
import { type ControlPlane, nodeSubject } from '../../test/kit/control-plane.ts'
import { type Kubelet, startKubelet } from '../../test/kit/kubelet.ts'
import { type Arm, pool as armsPool } from './arms.ts'
import { type Hub, startNodehub, startYurthub } from './hubs.ts'

/** What arms want of nodes; those that want the same can be tried on the same nodes. */
export type NodeKind = Pick<Arm, 'hostNetworkNodes' | 'podNetwork' | 'hub'>

/** Keeps off a node of no pool all pods but those of rows that are to have it. */
export const elsewhere = { key: 'compared/elsewhere', effect: 'NoSchedule' } as const

/** A hub and a kubelet with a network of their own. */
export class RealNode {
  readonly name: string
  readonly network: NodeNetwork
  readonly kubelet: Kubelet
  readonly hub: Hub
  /** The way to the API server. */
  readonly link: Daemon

  constructor(name: string, network: NodeNetwork, kubelet: Kubelet, hub: Hub, link: Daemon) {
    this.name = name
    this.network = network
    this.kubelet = kubelet
    this.hub = hub
    this.link = link
  }

  /** The container of a pod that answers at `port`: whether by the name of its pod, or of which. */
  async answerOf(container: RunningContainer, port: number): Promise<string | undefined> {
    const address = this.isInOwnNetwork(container)
      ? '127.0.0.1'
      : this.kubelet.runtime.address(container)
    if (address === undefined) return undefined
    return (await this.network.fetch(`http://${address}:${port}/index.html`))?.trim()
  }

  /** Whether a container is in the network of this node. */
  isInOwnNetwork({ processId }: RunningContainer): boolean {
    const its = namespaceOf(processId)
    return its !== undefined && its === namespaceOf(this.kubelet.daemon.id)
  }

  /** The containers of pods that answer, by pod. */
  async mainContainers(): Promise<ReadonlyMap<string, RunningContainer>> {
    const running = await this.kubelet.runtime.running()
    return new Map(
      running.filter(({ name }) => name === 'main').map((container) => [container.pod, container]),
    )
  }

  /** Without link and power; then with power again, and without a link until `mend`. */
  async rebootOffline(): Promise<void> {
    await this.link.kill()
    await this.hub.daemon.kill()
    await this.kubelet.powerCut()
    await Promise.all([this.hub.daemon.start(), this.kubelet.daemon.start()])
  }

  async mend(): Promise<void> {
    await this.link.start()
  }

  /** Whether the network of the node has an address. */
  has(address: string): boolean {
    return this.#ip('addr', 'show', 'dev', 'lo').includes(` ${address}/32 `)
  }

  remove(address: string): void {
    if (this.has(address)) this.#ip('addr', 'del', `${address}/32`, 'dev', 'lo')
  }

  #ip(...args: readonly string[]): string {
    const [command, within] = this.network.inside('ip', args)
    return execFileSync(command, within, { encoding: 'utf8' })
  }
}

function namespaceOf(id: number): string | undefined {
  try {
    return readlinkSync(`/proc/${id}/ns/net`)
  } catch {
    return undefined
  }
}

interface NodeOptions {
  readonly name: string
  readonly kind: NodeKind
  /** Its pool, where the kind has it in one; without, that of the arms. */
  readonly pool?: string
  /** OCI archives of what pods need beside busybox. */
  readonly images?: readonly string[]
  /** The program, where the kind wants that hub. */
  readonly yurthub?: string | undefined
  /** Whether it keeps off the pods of all rows but those that are to have it. */
  readonly isElsewhere?: boolean
}

/**
 * A node that registers itself, in the pool where it is to have the host's network: its other label
 * is admission's to give.
 */
export async function startNode(
  t: Scope,
  plane: ControlPlane,
  { name, kind, pool = armsPool, images = [], yurthub, isElsewhere = false }: NodeOptions,
): Promise<RealNode> {
  const network = await openNodeNetwork(t)
  const link = await network.reach(Number(new URL(plane.url).port))
  const { hostNetworkNodes, podNetwork } = kind
  const itsPool = hostNetworkNodes ? pool : undefined
  const hub =
    kind.hub === 'yurthub'
      ? await startYurthub(plane, network, { name, program: yurthub })
      : await startNodehub(plane, network, { name, pool: itsPool })
  const kubelet = await startKubeletBehind(t, plane, {
    name,
    network,
    hub,
    podNetwork,
    images,
    flags: [
      ...(itsPool === undefined ? [] : [`--node-labels=${nodePoolLabel}=${itsPool}`]),
      ...(isElsewhere ? [`--register-with-taints=${elsewhere.key}=:${elsewhere.effect}`] : []),
    ],
  })
  return new RealNode(name, network, kubelet, hub, link)
}

interface KubeletBehindOptions {
  readonly name: string
  readonly network: NodeNetwork
  readonly hub: Hub
  /** Whether pods get addresses of their own; else loopback alone. */
  readonly podNetwork: boolean
  readonly images?: readonly string[]
  readonly flags?: readonly string[]
}

/** A kubelet whose API server is a hub in the network of its node. */
function startKubeletBehind(
  t: Scope,
  plane: ControlPlane,
  { name, network, hub, podNetwork, images = [], flags = [] }: KubeletBehindOptions,
): Promise<Kubelet> {
  const networkFolder = network.workspace.file('net.d')
  mkdirSync(networkFolder)
  writeFileSync(join(networkFolder, loopbackName), loopbackNetwork)
  return startKubelet(t, {
    nodeName: name,
    kubeconfig: plane.kubeconfig(nodeSubject(name), hub.url, hub.authority),
    clientCa: plane.pki.ca.certificate,
    network,
    images,
    ...(!podNetwork && { networkFolder }),
    // Renewed each second, so that one that has its link again is heard of soon.
    config: { nodeLeaseDurationSeconds: 4 },
    flags,
  })
}
