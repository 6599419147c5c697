import type { Test } from 'tap'
import { adopt } from '../../../src/cli/adopt-command.ts'
import type { Command } from '../../../src/cli/command.ts'
import { nodeName, nodes, startCloud, type CloudServer } from '../../kit/cloud.ts'
import { freePort } from '../../kit/free-port.ts'
import { rootFolder } from '../../kit/root-folder.ts'
import { StaticPodNode } from '../../kit/static-pod-node.ts'
import { yurthubPod, yurthubRoot } from './yurthub-root.ts'
import { said, type Said } from '../../kit/terminal.ts'

export const run = (command: Command, argv: readonly string[]): Promise<Said> =>
  said((terminal) => command.run(argv, terminal))

const leases = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' }

export interface Adoptable {
  readonly root: string
  readonly cloud: CloudServer
  readonly node: StaticPodNode
  readonly adopting: (...flags: string[]) => Promise<Said>
  readonly markReady: (status: 'True' | 'False') => void
}

/**
 * A node whose kubelet runs a yurthub, in a cluster that has it Ready; `everyMs` as of its
 * `StaticPodNode`.
 */
export async function adoptable(
  t: Test,
  flags: readonly string[] = [],
  everyMs?: number,
): Promise<Adoptable> {
  const cloud = await startCloud(t, { tls: true })
  const markReady = (status: 'True' | 'False'): void => {
    const found = cloud.sandbox.get(nodes, nodeName)
    if (found === undefined) throw new Error('the Node is gone')
    const conditions = [{ type: 'Ready', status }]
    cloud.sandbox.update(nodes, { ...found, status: { conditions } }, 'status')
  }
  markReady('True')
  cloud.sandbox.create(leases, {
    metadata: { name: nodeName, namespace: 'kube-node-lease' },
    spec: { holderIdentity: nodeName },
  })
  const ports = { proxy: await freePort(), secure: await freePort(), ops: await freePort() }
  const pair = '/var/lib/kubelet/pki/kubelet-client-current.pem'
  const ca = '/etc/kubernetes/pki/ca.crt'
  const root = yurthubRoot(rootFolder(t), {
    pod: yurthubPod([
      `--server-addr=${cloud.url}`,
      `--proxy-port=${ports.proxy}`,
      `--proxy-secure-port=${ports.secure}`,
      `--serve-port=${ports.ops}`,
      '--node-name=$(NODE_NAME)',
      '--enable-dummy-if=false',
      ...flags,
    ]),
    files: {
      [ca]: cloud.sandbox.caCertificate ?? '',
      [pair]: cloud.node.certificate + cloud.node.key,
      '/etc/kubernetes/kubelet.conf': JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: cloud.url, 'certificate-authority': ca } }],
        users: [{ name: 'u', user: { 'client-certificate': pair, 'client-key': pair } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    },
  })
  const node = new StaticPodNode(t, root, {
    ports,
    nodeName,
    manifest: 'yurt-hub.yaml',
    ...(everyMs !== undefined && { everyMs }),
  })
  const adopting = (...more: string[]): Promise<Said> => run(adopt, [`--root=${root}`, ...more])
  return { root, cloud, node, adopting, markReady }
}
