import { readlinkSync } from 'node:fs'
import { type Nodehub, startNodehub } from '../../bench/host-network/hubs.ts'
import { startKubeletBehind } from '../../bench/host-network/node.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt } from '../../src/api/kube/json-at.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { Daemon } from '../kit/cluster/daemon.ts'
import { type NodeNetwork, openNodeNetwork } from '../kit/cluster/node-network.ts'
import type { Scope } from '../kit/cluster/workspace.ts'
import type { ControlPlane } from '../kit/control-plane.ts'
import type { Kubelet } from '../kit/kubelet.ts'
import { makeHostNetworkPool } from './host-network-pool.ts'
import { nodeReady } from './seen.ts'

/** A node of a host-network pool: hub, kubelet and containerd in a network of their own. */
export interface GuardedNode {
  readonly network: NodeNetwork
  readonly kubelet: Kubelet
  readonly hub: Nodehub
  /** The sandboxes and containers of a pod that run, by their ids. */
  readonly running: (pod: string) => Promise<readonly string[]>
  /** Whether the sandbox of a pod is in the network of the node. */
  readonly isOnHost: (pod: string) => Promise<boolean>
  /** How many sandboxes and containers containerd has started so far. */
  readonly started: () => number
}

/**
 * Starts a node without a pod network, in mode guarded. Its hub reads the sockets of the network
 * that the pods share.
 */
export async function startGuardedNode(
  t: Scope,
  plane: ControlPlane,
  name: string,
): Promise<GuardedNode> {
  const pool = 'kiosks'
  await makeHostNetworkPool(plane, pool)
  const network = await openNodeNetwork(t)
  await network.reach(Number(new URL(plane.url).port))
  const hub = await startNodehub(plane, network, { name, pool, mode: 'guarded' })
  const kubelet = await startKubeletBehind(t, plane, { name, network, hub, podNetwork: false })
  const starts = await recordStarts(network, kubelet)
  await nodeReady(plane.admin, name)
  await hub.propagate('guarded')
  const parts = async (pod: string) =>
    (await kubelet.runtime.running()).filter((each) => each.pod === pod)
  return {
    network,
    kubelet,
    hub,
    running: async (pod) => (await parts(pod)).map(({ id }) => id).toSorted(),
    async isOnHost(pod) {
      const sandbox = (await parts(pod)).find(({ kind }) => kind === 'sandbox')
      const [its, nodes] = [sandbox?.processId ?? 0, kubelet.daemon.id].map((id) =>
        readlinkSync(`/proc/${id}/ns/net`),
      )
      return its === nodes
    },
    started: () =>
      starts
        .log()
        .split('\n')
        .filter((line) => line.includes(' /tasks/start ')).length,
  }
}

/** Writes down what containerd starts from now on. */
function recordStarts({ workspace }: NodeNetwork, { runtime }: Kubelet): Promise<Daemon> {
  const found = findBinaries(['ctr'])
  if ('missing' in found) throw new Error(found.missing)
  return new Daemon(workspace, 'starts', {
    command: found.paths.ctr,
    args: ['-a', runtime.socket, '-n', 'k8s.io', 'events'],
    ready: () => Promise.resolve(true),
  }).start()
}

/** The condition of a pod that shows the verdict on it. */
export async function verdictOn({ admin }: ControlPlane, name: string): Promise<JsonObject> {
  const { body } = await admin.get(`/api/v1/namespaces/default/pods/${name}`)
  const pod = JSON.parse(body.toString()) as JsonObject
  const found = listAt(pod, 'status', 'conditions').find(
    (each) => textAt(each, 'type') === 'HostNetworkPropagated',
  )
  return (found ?? {}) as JsonObject
}
