import { join } from 'node:path'
import { ApiClient } from '../../test/kit/cluster/api-client.ts'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import { until } from '../../test/kit/until.ts'
import { freePort } from '../../test/kit/free-port.ts'
import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import { mallocSettings } from '../../src/cli/memory-settings.ts'
import type { Target } from '../load/target.ts'
import { nodeName, type Upstream } from '../upstream/upstream.ts'
import type { Peer, RunningPeer } from './peer.ts'

/** The entry of the build of a checkout. */
export const builtHub = (checkout: string): string => join(checkout, 'dist', 'src', 'main.js')

/** The hub whose entry is `module`, or that of another checkout under the name `against`. */
export const hub = (module: string, name: 'hub' | 'against' = 'hub'): Peer => ({
  name,
  missing: () => undefined,
  start: (upstream, workspace) => startHub(upstream, workspace, { name, module, peer: name }),
})

export interface HubOptions {
  /** Where it keeps what it has: two of one name share a store, and may not run side by side. */
  readonly name: string
  /** Its entry. */
  readonly module: string
  readonly env?: Readonly<Record<string, string>>
  /** After those that it has anyway. */
  readonly flags?: readonly string[]
  /** Node's. */
  readonly nodeFlags?: readonly string[]
}

/** A hub that can be started and ended over and over. */
export interface HubDaemon {
  readonly daemon: Daemon
  readonly target: Target
  readonly secure: Target
  /** Whether its metrics have this line. */
  readonly says: (line: string) => Promise<boolean>
}

/** As it is installed: built, with the flags and the environment that its image has. */
export async function hubDaemon(
  { node, kubeconfig }: Pick<Upstream, 'node' | 'kubeconfig'>,
  workspace: Workspace,
  { name, module, env = {}, flags = [], nodeFlags = [] }: HubOptions,
  ready: 'online' | 'started' = 'online',
): Promise<HubDaemon> {
  const [proxyPort, securePort, servePort] = [await freePort(), await freePort(), await freePort()]
  const ops = new ApiClient(`http://127.0.0.1:${servePort}`)
  const says = async (line: string): Promise<boolean> =>
    (await ops.get('/metrics')).body.includes(line)
  const daemon = new Daemon(workspace, name, {
    command: process.execPath,
    args: [
      '--max-semi-space-size=4',
      ...nodeFlags,
      module,
      'start',
      `--server-addr=${node.url}`,
      `--kubeconfig=${kubeconfig}`,
      `--node-name=${nodeName}`,
      `--proxy-port=${proxyPort}`,
      `--proxy-secure-port=${securePort}`,
      `--serve-port=${servePort}`,
      `--root-dir=${workspace.file(name)}`,
      '--anonymous-loopback=node',
      '--enable-dummy-if=false',
      ...flags,
    ],
    env: { ...mallocSettings, ...env },
    ready: () => (ready === 'online' ? says('nodehub_online 1') : Promise.resolve(true)),
    seconds: 120,
  })
  return {
    daemon,
    target: { url: `http://127.0.0.1:${proxyPort}` },
    secure: {
      ...node,
      url: `https://127.0.0.1:${securePort}`,
      ca: workspace.file(name, 'pki', 'ca.crt'),
    },
    says,
  }
}

/** Starts one that is measured as the peer of that name; resolves when it is online. */
export async function startHub(
  upstream: Upstream,
  workspace: Workspace,
  { peer, ...options }: HubOptions & { readonly peer: 'hub' | 'against' },
): Promise<RunningPeer> {
  const { daemon, target, secure, says } = await hubDaemon(upstream, workspace, options)
  await daemon.start()
  return {
    name: peer,
    target,
    secure,
    description: `nodehub on Node ${process.versions.node} with --max-semi-space-size=4 and its image’s settings of malloc`,
    processId: daemon.id,
    hubModule: options.module,
    stop: () => daemon.stop().then(done),
    whenOffline: () => until('the hub to be offline', () => says('nodehub_online 0')).then(done),
    whenOnline: () => until('the hub to be online', () => says('nodehub_online 1')).then(done),
  }
}

const done = (): void => undefined
