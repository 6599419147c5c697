import { freePort } from '../free-port.ts'
import { nodehubProgram } from '../hub-programs.ts'
import { ApiClient } from './api-client.ts'
import { Daemon } from './daemon.ts'
import { plainNode } from './plain-node.ts'
import type { Workspace } from './workspace.ts'

export interface HubProcessOptions {
  /** The API servers, most wanted first. */
  readonly servers: readonly string[]
  /** The hub's own credentials; absent: flags say how it gets them. */
  readonly kubeconfig?: string
  readonly nodeName: string
  /** Besides those it needs. */
  readonly flags?: readonly string[]
  /** The folder of its state in the workspace. */
  readonly folder?: string
  /** Whether it is waited for until it is ready, or has only begun. */
  readonly until?: 'ready' | 'alive'
}

export interface HubProcess {
  /** The plain listener, where callers without credentials are the node. */
  readonly url: string
  /** The TLS listener. */
  readonly secureUrl: string
  /** The file of the certificate of the hub's own authority. */
  readonly authority: string
  /** Health, readiness and metrics. */
  readonly opsUrl: string
  readonly daemon: Daemon
}

/**
 * Starts `nodehub start` as an operator would, in a process of its own: what it keeps lies in the
 * workspace, so that it finds it again when killed and started. It probes every second, to be back
 * online soon.
 */
export async function startHubProcess(
  workspace: Workspace,
  { servers, kubeconfig, nodeName, flags = [], folder = 'hub', until = 'ready' }: HubProcessOptions,
): Promise<HubProcess> {
  const [proxyPort, securePort, servePort] = [await freePort(), await freePort(), await freePort()]
  const opsUrl = `http://127.0.0.1:${servePort}`
  const ops = new ApiClient(opsUrl)
  const [command, args] = plainNode(
    nodehubProgram,
    'start',
    `--server-addr=${servers.join(',')}`,
    ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
    `--node-name=${nodeName}`,
    `--proxy-port=${proxyPort}`,
    `--proxy-secure-port=${securePort}`,
    `--serve-port=${servePort}`,
    `--root-dir=${workspace.file(folder)}`,
    '--heartbeat-interval-seconds=1',
    '--enable-dummy-if=false',
    ...flags,
  )
  const daemon = new Daemon(workspace, folder, {
    command,
    args,
    ready: async () => (await ops.get(until === 'ready' ? '/readyz' : '/livez')).status === 200,
    seconds: 20,
  })
  return {
    url: `http://127.0.0.1:${proxyPort}`,
    secureUrl: `https://127.0.0.1:${securePort}`,
    authority: workspace.file(folder, 'pki', 'ca.crt'),
    opsUrl,
    daemon: await daemon.start(),
  }
}
