import { join } from 'node:path'
import { ApiClient } from '../../test/kit/cluster/api-client.ts'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import { until } from '../../test/kit/until.ts'
import { freePort } from '../../test/kit/free-port.ts'
import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import { nodeName, type Upstream } from '../upstream/upstream.ts'
import type { Peer, RunningPeer } from './peer.ts'

const main = join(import.meta.dirname, '..', '..', 'dist', 'src', 'main.js')

/** As it is installed: built, with the flags and the environment that its image has. */
export const hub: Peer = {
  name: 'hub',
  missing: () => undefined,
  start: (upstream, workspace) => startHub(upstream, workspace, 'hub'),
}

/**
 * One that keeps what it has in the folder `name`, with `env` beside the environment that it has
 * anyway, and `flags` after its own.
 */
export async function startHub(
  { node, kubeconfig }: Upstream,
  workspace: Workspace,
  name: string,
  {
    env = {},
    flags = [],
  }: { readonly env?: Readonly<Record<string, string>>; readonly flags?: readonly string[] } = {},
): Promise<RunningPeer> {
  const [proxyPort, securePort, servePort] = [await freePort(), await freePort(), await freePort()]
  const ops = new ApiClient(`http://127.0.0.1:${servePort}`)
  const says = async (line: string): Promise<boolean> =>
    (await ops.get('/metrics')).body.includes(line)
  const daemon = new Daemon(workspace, name, {
    command: process.execPath,
    args: [
      '--max-semi-space-size=4',
      main,
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
    env: { MALLOC_ARENA_MAX: '1', ...env },
    ready: () => says('nodehub_online 1'),
    seconds: 30,
  })
  await daemon.start()
  return {
    name: 'hub',
    target: { url: `http://127.0.0.1:${proxyPort}` },
    secure: {
      ...node,
      url: `https://127.0.0.1:${securePort}`,
      ca: workspace.file(name, 'pki', 'ca.crt'),
    },
    description: `built, on Node ${process.versions.node} with --max-semi-space-size=4 and MALLOC_ARENA_MAX=1`,
    processId: daemon.id,
    stop: () => daemon.stop().then(done),
    whenOffline: () => until('the hub to be offline', () => says('nodehub_online 0')).then(done),
    whenOnline: () => until('the hub to be online', () => says('nodehub_online 1')).then(done),
  }
}

const done = (): void => undefined
