import { mkdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { loopbackName, loopbackNetwork } from '../../src/node/join/loopback.ts'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { Daemon } from '../kit/cluster/daemon.ts'
import { type NodeNetwork, openNodeNetwork } from '../kit/cluster/node-network.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import type { Scope } from '../kit/cluster/workspace.ts'
import { type ControlPlane, nodeSubject } from '../kit/control-plane.ts'
import { freePort } from '../kit/free-port.ts'
import { type Kubelet, startKubelet } from '../kit/kubelet.ts'
import { until } from '../kit/until.ts'
import { makeHostNetworkPool } from './host-network-pool.ts'
import { nodeReady } from './seen.ts'

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

export type Mode = 'on' | 'guarded' | 'off' | 'observe'

/** A node of a host-network pool: hub, kubelet and containerd in a network of their own. */
export interface GuardedNode {
  readonly network: NodeNetwork
  readonly kubelet: Kubelet
  readonly hub: Daemon
  /** The folder of the hub. */
  readonly root: string
  /** Sets the mode, which a running hub takes over with `mode`, and another one at its start. */
  readonly write: (mode: Mode) => void
  readonly mode: (mode: Mode) => Promise<void>
  /** What the hub says of its pods. */
  readonly report: () => Promise<JsonObject>
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
  nodeName: string,
): Promise<GuardedNode> {
  const pool = 'kiosks'
  await makeHostNetworkPool(plane, pool)
  const network = await openNodeNetwork(t)
  await network.reach(Number(new URL(plane.url).port))
  const { workspace } = network
  const [securePort, servePort] = [await freePort(), await freePort()]
  const root = workspace.file('hub')
  const config = workspace.file('hub.yaml')
  const write = (mode: Mode): void => writeFileSync(config, `host-network-propagation: ${mode}\n`)
  write('guarded')
  const ops = `http://127.0.0.1:${servePort}`
  const [node, script] = plainNode(
    main,
    'start',
    `--server-addr=${plane.url}`,
    `--kubeconfig=${plane.kubeconfig(nodeSubject(nodeName))}`,
    `--node-name=${nodeName}`,
    `--nodepool-name=${pool}`,
    '--host-network-node',
    '--plain-proxy=false',
    `--config=${config}`,
    '--enable-dummy-if=false',
    '--heartbeat-interval-seconds=1',
    `--proxy-secure-port=${securePort}`,
    `--serve-port=${servePort}`,
    `--root-dir=${root}`,
  )
  const [command, args] = network.inside(node, script)
  const hub = await new Daemon(workspace, 'hub', {
    command,
    args,
    ready: async () => (await network.fetch(`${ops}/readyz`)) !== undefined,
  }).start()
  const networkFolder = workspace.file('net.d')
  mkdirSync(networkFolder)
  writeFileSync(join(networkFolder, loopbackName), loopbackNetwork)
  const authority = join(root, 'pki', 'ca.crt')
  const kubelet = await startKubelet(t, {
    nodeName,
    kubeconfig: plane.kubeconfig(
      nodeSubject(nodeName),
      `https://127.0.0.1:${securePort}`,
      authority,
    ),
    clientCa: plane.pki.ca.certificate,
    network,
    networkFolder,
  })
  const starts = await recordStarts(network, kubelet)
  await nodeReady(plane.admin, nodeName)
  const report = async (): Promise<JsonObject> =>
    JSON.parse((await network.fetch(`${ops}/inspect/host-network`)) ?? '{}') as JsonObject
  await until('the kind of the pool to be known', async () => {
    return valueAt(await report(), 'hostNetworkPool') === true
  })
  const parts = async (pod: string) =>
    (await kubelet.runtime.running()).filter((each) => each.pod === pod)
  return {
    network,
    kubelet,
    hub,
    root,
    write,
    async mode(mode) {
      write(mode)
      process.kill(hub.id, 'SIGHUP')
      await until(`mode ${mode}`, async () => textAt(await report(), 'mode') === mode)
    },
    report,
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
