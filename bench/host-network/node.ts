import { mkdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loopbackName, loopbackNetwork } from '../../src/node/join/loopback.ts'
import { nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import { type NodeNetwork, openNodeNetwork } from '../../test/kit/cluster/node-network.ts'
import { plainNode } from '../../test/kit/cluster/plain-node.ts'
import type { Scope } from '../../test/kit/cluster/workspace.ts'
import { type ControlPlane, nodeSubject } from '../../test/kit/control-plane.ts'
import { until } from '../../test/kit/until.ts'
import { freePort } from '../../test/kit/free-port.ts'
import { type Kubelet, startKubelet } from '../../test/kit/kubelet.ts'
import { type Arm, pool } from './arms.ts'

/** What arms want of nodes; those that want the same can be tried on the same nodes. */
export type NodeKind = Pick<Arm, 'hostNetworkNodes' | 'propagates'>

/** A kubelet with a network of its own. */
export interface RealNode {
  readonly name: string
  readonly network: NodeNetwork
  readonly kubelet: Kubelet
  /** Switches the legacy filter of its hub off, if it has one. */
  readonly switchOff: () => Promise<void>
}

/** Whether a pod's sandbox is in the network of its node; `undefined` where it has none. */
export async function sharesNetwork(
  { kubelet }: RealNode,
  pod: string,
): Promise<boolean | undefined> {
  const running = await kubelet.runtime.running()
  const sandbox = running.find((each) => each.kind === 'sandbox' && each.pod === pod)
  if (sandbox === undefined) return undefined
  const [its, nodes] = [sandbox.processId, kubelet.daemon.id].map((id) => namespaceOf(id))
  return its === undefined ? undefined : its === nodes
}

function namespaceOf(id: number): string | undefined {
  try {
    return readlinkSync(`/proc/${id}/ns/net`)
  } catch {
    return undefined
  }
}

/**
 * A node that registers itself, in the pool where it is to have the host's network: its other label
 * is admission's to give.
 */
export async function startNode(
  t: Scope,
  plane: ControlPlane,
  nodeName: string,
  { hostNetworkNodes, propagates }: NodeKind,
): Promise<RealNode> {
  const network = await openNodeNetwork(t)
  await network.reach(Number(new URL(plane.url).port))
  const subject = nodeSubject(nodeName)
  const hub = propagates ? await startPropagatingHub(plane, network, nodeName) : undefined
  const kubeconfig = plane.kubeconfig(subject, ...(hub?.access ?? []))
  const networkFolder = network.workspace.file('net.d')
  mkdirSync(networkFolder)
  writeFileSync(join(networkFolder, loopbackName), loopbackNetwork)
  const kubelet = await startKubelet(t, {
    nodeName,
    kubeconfig,
    clientCa: plane.pki.ca.certificate,
    network,
    ...(hostNetworkNodes && {
      networkFolder,
      flags: [`--node-labels=${nodePoolLabel}=${pool}`],
    }),
  })
  return { name: nodeName, network, kubelet, switchOff: async () => hub?.switchOff() }
}

interface PropagatingHub {
  /** The address of its TLS proxy, as its node has it, and the file of who vouches for it. */
  readonly access: [string, string]
  readonly switchOff: () => Promise<void>
}

async function startPropagatingHub(
  plane: ControlPlane,
  network: NodeNetwork,
  nodeName: string,
): Promise<PropagatingHub> {
  const [securePort, servePort] = [await freePort(), await freePort()]
  const root = network.workspace.file('hub')
  const config = network.workspace.file('hub.yaml')
  writeFileSync(config, 'host-network-propagation: on\n')
  const [node, script] = plainNode(
    join(import.meta.dirname, '..', '..', 'src', 'main.ts'),
    'start',
    `--server-addr=${plane.url}`,
    `--kubeconfig=${plane.kubeconfig(nodeSubject(nodeName))}`,
    `--node-name=${nodeName}`,
    `--nodepool-name=${pool}`,
    '--host-network-node',
    '--plain-proxy=false',
    `--config=${config}`,
    '--enable-dummy-if=false',
    `--proxy-secure-port=${securePort}`,
    `--serve-port=${servePort}`,
    `--root-dir=${root}`,
  )
  const [command, args] = network.inside(node, script)
  const daemon = await new Daemon(network.workspace, 'hub', {
    command,
    args,
    ready: async () => (await network.fetch(`http://127.0.0.1:${servePort}/readyz`)) !== undefined,
  }).start()
  const ops = `http://127.0.0.1:${servePort}`
  return {
    access: [`https://127.0.0.1:${securePort}`, join(root, 'pki', 'ca.crt')],
    async switchOff() {
      writeFileSync(config, 'host-network-propagation: off\n')
      await daemon.restart()
      await until('the filter to be off', async () => {
        const report = JSON.parse((await network.fetch(`${ops}/inspect/host-network`)) ?? '{}')
        return (report as { readonly mode?: string }).mode === 'off'
      })
    },
  }
}
