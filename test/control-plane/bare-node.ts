import { execFile, execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { parse } from 'yaml'
import { Daemon } from '../kit/cluster/daemon.ts'
import { noNodeNetwork, openNodeNetwork, type NodeNetwork } from '../kit/cluster/node-network.ts'
import { noOwnFiles } from '../kit/cluster/own-files.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import type { Scope } from '../kit/cluster/workspace.ts'
import { noControlPlane, type ControlPlane } from '../kit/control-plane.ts'
import { type Kubelet, noKubelet, prepareKubelet, type PreparedKubelet } from '../kit/kubelet.ts'

/** Why no bare node can join a control plane here, as the reason of a skipped test. */
export const noBareNode = (): string | false =>
  noControlPlane() ?? noKubelet() ?? noNodeNetwork() ?? noOwnFiles() ?? false

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const networkFolder = '/etc/cni/net.d'

/** What a command printed, and how it ended. */
interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

/**
 * A machine with a kubelet and a container runtime that is in no cluster yet. Ports, paths and the
 * host's name are those of a real one, as it has network and files to itself.
 */
export class BareNode {
  readonly name: string
  readonly network: NodeNetwork
  readonly #prepared: PreparedKubelet

  constructor(name: string, network: NodeNetwork, prepared: PreparedKubelet) {
    this.name = name
    this.network = network
    this.#prepared = prepared
  }

  /** Runs a command of the hub, as an operator does. */
  run(...words: readonly string[]): Promise<Ended> {
    const { promise, resolve } = Promise.withResolvers<Ended>()
    const [node, script] = plainNode(main, ...words)
    const [command, args] = this.network.inside(node, script)
    execFile(command, args, { timeout: 300_000 }, (error, out, err) => {
      const code = error === null ? 0 : Number(error.code ?? -1)
      resolve({ code, out, err })
    })
    return promise
  }

  /**
   * Starts the hub with the arguments and the rights of the static pod that join has written, and
   * more. In place of the kubelet, which would need the image: `image.test.ts` has that.
   */
  startHub(...more: readonly string[]): Promise<Daemon> {
    const manifest = parse(this.read('/etc/kubernetes/manifests/nodehub.yaml')) as StaticPod
    const given = manifest.spec.containers[0]?.args ?? []
    const [node, script] = plainNode(main, ...given, '--heartbeat-interval-seconds=1', ...more)
    const rights = ['--bounding-set=-all,+net_bind_service', '--inh-caps=-all', '--no-new-privs']
    const [command, args] = this.network.inside('setpriv', [...rights, node, ...script])
    return new Daemon(this.network.workspace, 'hub', {
      command,
      args,
      env: { NODE_NAME: this.name },
      ready: async () => (await this.network.fetch(`${this.opsUrl}/readyz`)) !== undefined,
    }).start()
  }

  /** Runs the unit for the interface of pods that join has written, as systemd does at boot. */
  makeDummyInterface(): void {
    const unit = this.read('/etc/systemd/system/nodehub-dummy.service')
    const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
    execFileSync(...this.network.inside('sh', ['-c', command]))
  }

  /** Of the hub, for `network.fetch`. */
  readonly opsUrl = 'http://127.0.0.1:10267'

  /** Starts the kubelet as the unit of kubeadm's packages does. */
  startKubelet(): Promise<Kubelet> {
    const file = this.read('/var/lib/kubelet/kubeadm-flags.env')
    const written = /^KUBELET_KUBEADM_ARGS="?(.*?)"?$/m.exec(file)?.[1] ?? ''
    return this.startKubeletWith(
      '--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf',
      '--kubeconfig=/etc/kubernetes/kubelet.conf',
      ...written.split(' '),
    )
  }

  /** Starts the kubelet with these flags, and the configuration in its usual file. */
  startKubeletWith(...flags: readonly string[]): Promise<Kubelet> {
    return this.#prepared.start('/var/lib/kubelet', [
      '--config=/var/lib/kubelet/config.yaml',
      ...flags,
      `--node-ip=${this.#prepared.address}`,
      '--v=2',
    ])
  }

  /** Writes a file of the node. */
  write(path: string, content: string | Buffer): void {
    const script = ['-ec', 'mkdir -p "${0%/*}"; umask 077; cat > "$0"', path]
    execFileSync(...this.network.inside('sh', script), { input: content })
  }

  /** Writes the configuration of its kubelet, as `join` does on a bare node. */
  configureKubelet(): void {
    this.write('/var/lib/kubelet/config.yaml', JSON.stringify(this.#prepared.config))
  }

  /** A file of the node. Links in it are the node's, too. */
  read(path: string): string {
    return execFileSync(...this.network.inside('cat', [path]), { encoding: 'utf8' })
  }

  /** Gives pods addresses of their own, from which they reach the node. */
  addPodNetwork(): void {
    const subnet = this.network.podNetwork
    const ipam = { type: 'host-local', subnet, routes: [{ dst: '0.0.0.0/0' }] }
    const plugins = [{ type: 'ptp', ipMasq: false, ipam }]
    const network = { cniVersion: '0.4.0', name: 'pods', plugins }
    this.write(`${networkFolder}/10-pods.conflist`, JSON.stringify(network))
  }
}

interface StaticPod {
  readonly spec: { readonly containers: readonly { readonly args: readonly string[] }[] }
}

/** Makes such a node, which reaches the API server at a port of this machine's loopback. */
export async function openBareNode(
  t: Scope,
  plane: ControlPlane,
  {
    name,
    port,
    images = [],
    staticPodPath,
  }: { name: string; port: number; images?: readonly string[]; staticPodPath?: string },
): Promise<BareNode> {
  const network = await openNodeNetwork(t, { hostName: name })
  await network.reach(port)
  const prepared = await prepareKubelet(t, {
    nodeName: name,
    clientCa: plane.pki.ca.certificate,
    network,
    networkFolder,
    images,
    ...(staticPodPath !== undefined && { staticPodPath }),
  })
  await publishKubeletConfig(plane, { ...prepared.config, rotateCertificates: true })
  return new BareNode(name, network, prepared)
}

/** As `kubeadm init` does: nodes that join have this configuration from the cluster. */
async function publishKubeletConfig({ admin }: ControlPlane, config: object): Promise<void> {
  const metadata = { name: 'kubelet-config' }
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system'
  const apiGroup = 'rbac.authorization.k8s.io'
  const rule = { apiGroups: [''], resources: ['configmaps'], resourceNames: ['kubelet-config'] }
  for (const [path, object] of [
    [
      '/api/v1/namespaces/kube-system/configmaps',
      { metadata, data: { kubelet: JSON.stringify(config) } },
    ],
    [`${rbac}/roles`, { metadata, rules: [{ ...rule, verbs: ['get'] }] }],
    [
      `${rbac}/rolebindings`,
      {
        metadata,
        roleRef: { apiGroup, kind: 'Role', name: 'kubelet-config' },
        subjects: [{ apiGroup, kind: 'Group', name: 'system:nodes' }],
      },
    ],
  ] as const) {
    const { status, body } = await admin.post(path, object)
    if (status !== 201) throw new Error(`${path}: ${status} ${body.toString()}`)
  }
}
