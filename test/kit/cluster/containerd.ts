import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Daemon } from './daemon.ts'
import { busyboxImage, writeBusyboxImage } from './oci-image.ts'
import type { Workspace } from './workspace.ts'

const exec = promisify(execFile)

export interface RunningContainer {
  readonly id: string
  readonly processId: number
  /** `sandbox` holds a pod's namespaces; `container` is one of the pod's own. */
  readonly kind: 'container' | 'sandbox'
  readonly pod: string
  /** The name in the pod's spec; a sandbox has none. */
  readonly name: string
}

interface ContainerdTools {
  readonly containerd: string
  readonly ctr: string
  readonly busybox: string
}

/** A containerd of a test's own, with its state in the workspace, and `ctr` to look into it. */
export class Containerd {
  readonly daemon: Daemon
  readonly socket: string
  readonly #ctr: string
  /** Of each container that ever ran: they never change. */
  readonly #labels = new Map<string, Readonly<Record<string, string>>>()

  constructor(daemon: Daemon, socket: string, ctr: string) {
    this.daemon = daemon
    this.socket = socket
    this.#ctr = ctr
  }

  /** Every container that runs, pods' sandboxes included. */
  async running(): Promise<RunningContainer[]> {
    const tasks = (await this.#run('tasks', 'ls')).split('\n').slice(1)
    const running = tasks
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , status]) => status === 'RUNNING')
    const all = await Promise.all(
      running.map(([id = '', processId]) => this.#describe(id, Number(processId))),
    )
    return all.filter((each) => each !== undefined)
  }

  /**
   * SIGKILL to the container's first process, from outside, as the kernel does when memory is
   * short.
   */
  kill({ processId }: RunningContainer): void {
    process.kill(processId, 'SIGKILL')
  }

  /**
   * Its address in the pod network, as the kernel has it; `undefined` where it has none, or is no
   * more.
   */
  address({ processId }: RunningContainer): string | undefined {
    const routes = `/proc/${processId}/net/fib_trie`
    if (!existsSync(routes)) return undefined
    const local = readFileSync(routes, 'utf8').matchAll(/\|-- (\S+)\n\s+\/32 host LOCAL/g)
    return [...local].map(([, address]) => address).find((each) => !each?.startsWith('127.'))
  }

  /** Makes an archive's images known to the kubelet. */
  async importImage(archive: string): Promise<void> {
    await this.#run('images', 'import', archive)
  }

  async #describe(id: string, processId: number): Promise<RunningContainer | undefined> {
    const labels = await this.#labelsOf(id)
    return (
      labels && {
        id,
        processId,
        kind: labels['io.cri-containerd.kind'] === 'sandbox' ? 'sandbox' : 'container',
        pod: labels['io.kubernetes.pod.name'] ?? '',
        name: labels['io.kubernetes.container.name'] ?? '',
      }
    )
  }

  /** `undefined` where it has ended since it was listed. */
  async #labelsOf(id: string): Promise<Readonly<Record<string, string>> | undefined> {
    const known = this.#labels.get(id)
    if (known) return known
    const info = await this.#run('containers', 'info', id).catch(() => undefined)
    if (info === undefined) return undefined
    const { Labels: labels } = JSON.parse(info) as { Labels: Record<string, string> }
    this.#labels.set(id, labels)
    return labels
  }

  async #run(...args: string[]): Promise<string> {
    const { stdout } = await exec(this.#ctr, ['-a', this.socket, '-n', 'k8s.io', ...args])
    return stdout
  }
}

/** A command line that does the same in the network of a node. */
export type Enter = (command: string, args: readonly string[]) => [string, string[]]

/**
 * Starts containerd with busybox imported; its pods get addresses of `network`, or have the network
 * whose configuration lies in that folder.
 */
export async function startContainerd(
  workspace: Workspace,
  { containerd, ctr, busybox }: ContainerdTools,
  network: string,
  enter: Enter = (command, args) => [command, [...args]],
): Promise<Containerd> {
  const socket = workspace.file('containerd.sock')
  const config = workspace.file('containerd.toml')
  const given = network.startsWith('/')
  const networkFolder = given ? network : workspace.file('cni')
  writeFileSync(config, configuration(workspace, socket, networkFolder))
  if (!given) {
    mkdirSync(networkFolder)
    writeFileSync(join(networkFolder, '10-test.conflist'), addressed(workspace, network))
  }
  const [command, args] = enter(containerd, ['--config', config])
  const daemon = new Daemon(workspace, 'containerd', {
    command,
    args,
    ready: async () => {
      await exec(ctr, ['-a', socket, '-n', 'k8s.io', 'images', 'ls'])
      return true
    },
  })
  const started = new Containerd(await daemon.start(), socket, ctr)
  const archive = workspace.file('busybox.tar')
  writeBusyboxImage(busybox, archive)
  await started.importImage(archive)
  return started
}

/**
 * Network namespaces and runc's state lie in the workspace too, so that nothing is left in places
 * shared with other runtimes.
 */
const configuration = (workspace: Workspace, socket: string, networkFolder: string): string => `
version = 2
root = "${workspace.file('containerd-root')}"
state = "${workspace.file('containerd-state')}"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "${socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${workspace.file('containerd-opt')}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${busyboxImage}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${cniPlugins}"
    conf_dir = "${networkFolder}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "${workspace.file('runc')}"
`

/** Where Debian's containernetworking-plugins puts them. */
export const cniPlugins = '/usr/lib/cni'

const addressed = (workspace: Workspace, subnet: string): string =>
  JSON.stringify({
    cniVersion: '0.4.0',
    name: workspace.name,
    plugins: [
      {
        type: 'ptp',
        ipMasq: false,
        ipam: { type: 'host-local', subnet, dataDir: workspace.file('cni-addresses') },
      },
    ],
  })
