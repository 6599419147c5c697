import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Daemon } from './daemon.ts'
import { busyboxImage, writeBusyboxImage } from './oci-image.ts'
import { takesOverlays } from './overlay.ts'
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

/** Whether its first process is there, and is no longer runc's, which waits for the start. */
async function runs(id: string, processId: number): Promise<boolean> {
  const of = (name: string): Promise<string> => readFile(`/proc/${processId}/${name}`, 'utf8')
  const stat = await of('stat')
  const isEnded = /[ZX]/.test(stat[stat.lastIndexOf(')') + 2] ?? '')
  return !isEnded && !stat.includes('(runc:[') && (await of('cgroup')).includes(id)
}

/** `undefined` for what is being made yet, or has ended meanwhile. */
const unlessGone = <Of>(reading: Promise<Of>): Promise<Of | undefined> =>
  reading.catch((cause: unknown) => {
    if (['ENOENT', 'ESRCH'].includes((cause as NodeJS.ErrnoException).code ?? '')) return undefined
    throw cause
  })

interface ContainerdPlaces {
  readonly socket: string
  /** Of the `state` of its configuration. */
  readonly state: string
  readonly ctr: string
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
  /** The folder of each task. */
  readonly #tasks: string
  /** Of each container that ever ran: they never change. */
  readonly #descriptions = new Map<string, Omit<RunningContainer, 'processId'>>()

  constructor(daemon: Daemon, { socket, ctr, state }: ContainerdPlaces) {
    this.daemon = daemon
    this.socket = socket
    this.#ctr = ctr
    this.#tasks = join(state, 'io.containerd.runtime.v2.task', 'k8s.io')
  }

  /**
   * Every container that runs, pods' sandboxes included: by what the shims have written, as asking
   * containerd takes a process each time.
   */
  async running(): Promise<RunningContainer[]> {
    const ids = await unlessGone(readdir(this.#tasks))
    const all = await Promise.all((ids ?? []).map((id) => unlessGone(this.#running(id))))
    return all.filter((each) => each !== undefined)
  }

  async #running(id: string): Promise<RunningContainer | undefined> {
    const processId = Number(await readFile(join(this.#tasks, id, 'init.pid'), 'utf8'))
    return (await runs(id, processId)) ? { ...(await this.#describe(id)), processId } : undefined
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

  async #describe(id: string): Promise<Omit<RunningContainer, 'processId'>> {
    const known = this.#descriptions.get(id)
    if (known) return known
    const config = await readFile(join(this.#tasks, id, 'config.json'), 'utf8')
    const { annotations } = JSON.parse(config) as { annotations: Record<string, string> }
    const of = (name: string): string => annotations[`io.kubernetes.cri.${name}`] ?? ''
    const description = {
      id,
      kind: of('container-type') === 'sandbox' ? 'sandbox' : 'container',
      pod: of('sandbox-name'),
      name: of('container-name'),
    } as const
    this.#descriptions.set(id, description)
    return description
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
  const state = stateOf(workspace)
  const started = new Containerd(await daemon.start(), { socket, state, ctr })
  const archive = workspace.file('busybox.tar')
  writeBusyboxImage(busybox, archive)
  await started.importImage(archive)
  return started
}

const stateOf = (workspace: Workspace): string => workspace.file('containerd-state')

/**
 * Network namespaces and runc's state lie in the workspace too, so that nothing is left in places
 * shared with other runtimes.
 */
const configuration = (workspace: Workspace, socket: string, networkFolder: string): string => `
version = 2
root = "${workspace.file('containerd-root')}"
state = "${stateOf(workspace)}"
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
    snapshotter = "${takesOverlays(workspace.path) ? 'overlayfs' : 'native'}"
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
