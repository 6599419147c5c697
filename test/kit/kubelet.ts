import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ApiClient, type KubeObject } from './cluster/api-client.ts'
import { findBinaries } from './cluster/binaries.ts'
import { type Containerd, cniPlugins, type Enter, startContainerd } from './cluster/containerd.ts'
import { makeControlGroup } from './cluster/control-group.ts'
import { Daemon } from './cluster/daemon.ts'
import { addNodeAddress } from './cluster/node-address.ts'
import type { NodeNetwork } from './cluster/node-network.ts'
import type { CertificateFiles } from './cluster/pki.ts'
import type { Release } from './cluster/releases.ts'
import { until } from './until.ts'
import { type Scope, type Workspace, openWorkspace } from './cluster/workspace.ts'
import { freePort } from './free-port.ts'

export interface KubeletOptions {
  readonly nodeName: string
  /**
   * Where its API server is and what it shows there; may name a plain `http://` server without
   * credentials.
   */
  readonly kubeconfig: string
  /** Who may ask the kubelet for logs and exec: the authority of the API server's certificate. */
  readonly clientCa: string
  /** Whether its API server says who may use its API; otherwise whoever `clientCa` vouches for. */
  readonly asksWhoMay?: boolean
  /** Manifests in this folder run whatever the API server says. */
  readonly staticPodPath?: string
  /** OCI archives imported before the kubelet starts, besides busybox. */
  readonly images?: readonly string[]
  readonly featureGates?: Readonly<Record<string, boolean>>
  /** More of its configuration. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Flags behind those it needs: of what is given twice the last counts. */
  readonly flags?: readonly string[]
  /** Where the container runtime finds its network, in place of one with addresses for pods. */
  readonly networkFolder?: string
  /** A network of the node's own, in place of an address on this machine's loopback. */
  readonly network?: NodeNetwork
  /** Whose kubelet it is; without, whichever is found first. */
  readonly release?: Release
}

const binaries = ['kubelet', 'containerd', 'runc', 'ctr', 'busybox', 'ip', 'umount'] as const

/**
 * Why no kubelet can run containers here, as the reason of a skipped test; `undefined` if one can.
 */
export function noKubelet(release?: Release): string | undefined {
  if (process.platform !== 'linux') return 'no kubelet: only Linux runs one'
  if (process.getuid?.() !== 0) return 'no kubelet: only root can start one'
  const found = findBinaries(binaries, release)
  if ('missing' in found) return `no kubelet: ${found.missing}`
  const plugin = ['ptp', 'host-local'].find((name) => !existsSync(join(cniPlugins, name)))
  return plugin === undefined ? undefined : `no kubelet: no ${plugin} in ${cniPlugins}`
}

interface KubeletPlace {
  readonly nodeName: string
  readonly url: URL
  readonly network: NodeNetwork | undefined
  readonly unmountMemory: () => void
}

/** A real kubelet with a container runtime of its own. */
export class Kubelet {
  readonly nodeName: string
  readonly daemon: Daemon
  readonly runtime: Containerd
  readonly #url: URL
  readonly #network: NodeNetwork | undefined
  readonly #unmountMemory: () => void

  constructor(
    { nodeName, url, network, unmountMemory }: KubeletPlace,
    daemon: Daemon,
    runtime: Containerd,
  ) {
    this.nodeName = nodeName
    this.daemon = daemon
    this.runtime = runtime
    this.#url = url
    this.#network = network
    this.#unmountMemory = unmountMemory
  }

  /**
   * A list of the pods that the kubelet itself takes for its own, asked by the holder of a
   * certificate it believes.
   */
  async pods(credentials: CertificateFiles): Promise<KubeObject> {
    // The kubelet vouches for its own serving certificate.
    const socket = this.#network?.connect(this.#url.hostname, this.#url.port)
    const client = new ApiClient(this.#url.href, { credentials, socket })
    const list = (await client.get('/pods')).json()
    client.close()
    return list
  }

  /** kill -9 and a fresh start: containers go on running meanwhile. */
  restart(): Promise<void> {
    return this.daemon.restart()
  }

  /**
   * What a power cut does to it: it is killed, and so is every container; what was mounted in
   * memory (secrets, tokens) is gone. Disks stay.
   */
  async powerCut(): Promise<void> {
    await this.daemon.kill()
    await until('every container to be gone', async () => {
      const running = await this.runtime.running()
      for (const each of running) this.runtime.kill(each)
      return running.length === 0
    })
    this.#unmountMemory()
  }

  /** The running containers of pods, without their sandboxes, by pod's name. */
  async containers(): Promise<
    Map<string, { id: string; kill: () => void; address: () => string | undefined }>
  > {
    const running = await this.runtime.running()
    return new Map(
      running
        .filter(({ kind }) => kind === 'container')
        .map((each) => [
          each.pod,
          {
            id: each.id,
            kill: () => this.runtime.kill(each),
            address: () => this.runtime.address(each),
          },
        ]),
    )
  }
}

/** A container runtime, and what a kubelet needs to be started on it. */
export interface PreparedKubelet {
  readonly workspace: Workspace
  /** Of a KubeletConfiguration. */
  readonly config: object
  readonly address: string
  /** Starts the kubelet with these flags, of which `root` is its `--root-dir`. */
  start(root: string, flags: readonly string[]): Promise<Kubelet>
}

/**
 * Starts containerd and a kubelet; with the test, every container, mount, address and control group
 * of theirs ends.
 */
export async function startKubelet(t: Scope, options: KubeletOptions): Promise<Kubelet> {
  const prepared = await prepareKubelet(t, options)
  const { workspace, config, address } = prepared
  const configFile = workspace.file('kubelet.json')
  writeFileSync(configFile, JSON.stringify(config))
  const root = workspace.file('kubelet')
  mkdirSync(root)
  return prepared.start(root, [
    `--config=${configFile}`,
    `--kubeconfig=${options.kubeconfig}`,
    `--root-dir=${root}`,
    `--cert-dir=${join(root, 'pki')}`,
    `--hostname-override=${options.nodeName}`,
    `--node-ip=${address}`,
    '--v=2',
    ...(options.flags ?? []),
  ])
}

/** As `startKubelet`, but the kubelet is yet to be started. */
export async function prepareKubelet(
  t: Scope,
  options: Omit<KubeletOptions, 'kubeconfig' | 'flags'>,
): Promise<PreparedKubelet> {
  const found = findBinaries(binaries, options.release)
  if ('missing' in found) throw new Error(found.missing)
  const { paths } = found
  const workspace = openWorkspace(t)
  const { address, podNetwork } = options.network ?? addNodeAddress(workspace, paths.ip)
  makeControlGroup(workspace.name)
  const { network } = options
  // A kubelet of a node with files of its own names nothing of the workspace, and would make its
  // folders again while they are removed.
  if (network) appendFileSync(workspace.file('namespaces'), `${network.workspace.name}\n`)
  const enter: Enter = (command, args) => network?.inside(command, args) ?? [command, [...args]]
  const runtime = await startContainerd(
    workspace,
    paths,
    options.networkFolder ?? podNetwork,
    enter,
  )
  for (const image of options.images ?? []) await runtime.importImage(image)
  const healthPort = await freePort()
  const port = await freePort()
  const health = new ApiClient(`http://127.0.0.1:${healthPort}`)
  return {
    workspace,
    config: configuration(workspace, options, { address, port, healthPort, runtime }),
    address,
    async start(root, flags) {
      const [command, args] = enter(paths.kubelet, flags)
      const daemon = new Daemon(workspace, 'kubelet', {
        command,
        args,
        ready: async () =>
          network
            ? (await network.fetch(`http://127.0.0.1:${healthPort}/healthz`)) === 'ok'
            : (await health.get('/healthz')).status === 200,
      })
      const unmountMemory = (): void => {
        for (const mount of memoryMountsUnder(root, enter))
          execFileSync(...enter(paths.umount, ['-l', mount]))
      }
      const { nodeName } = options
      const url = new URL(`https://${address}:${port}`)
      const place = { nodeName, url, network, unmountMemory }
      return new Kubelet(place, await daemon.start(), runtime)
    },
  }
}

/** Mount points of file systems in memory, the innermost first, as a node has them. */
const memoryMountsUnder = (folder: string, enter: Enter): string[] =>
  execFileSync(...enter('cat', ['/proc/mounts']), { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, place = '', type]) => type === 'tmpfs' && place.startsWith(`${folder}/`))
    .map(([, place = '']) => place)
    .toReversed()

interface Places {
  readonly address: string
  readonly port: number
  readonly healthPort: number
  readonly runtime: Containerd
}

/** As a default installation has it, but for what a shared, small or old machine cannot give. */
function configuration(
  workspace: Workspace,
  options: Omit<KubeletOptions, 'kubeconfig'>,
  { address, port, healthPort, runtime }: Places,
): object {
  const {
    clientCa,
    asksWhoMay = false,
    staticPodPath,
    featureGates,
    network,
    config = {},
  } = options
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address,
    port,
    healthzBindAddress: '127.0.0.1',
    healthzPort: healthPort,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: asksWhoMay },
      x509: { clientCAFile: clientCa },
    },
    authorization: { mode: asksWhoMay ? 'Webhook' : 'AlwaysAllow' },
    containerRuntimeEndpoint: `unix://${runtime.socket}`,
    podLogsDir: network?.hasOwnFiles ? '/var/log/pods' : workspace.file('pod-logs'),
    volumePluginDir: workspace.file('volume-plugins'),
    ...(featureGates && { featureGates }),
    ...(staticPodPath !== undefined && { staticPodPath, fileCheckFrequency: '1s' }),
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${workspace.name}`,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    localStorageCapacityIsolation: false,
    makeIPTablesUtilChains: false,
    evictionHard: { 'memory.available': '100Mi' },
    clusterDomain: 'cluster.local',
    clusterDNS: ['10.96.0.10'],
    ...config,
  }
}
