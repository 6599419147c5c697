import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { ApiClient } from '../../test/kit/cluster/api-client.ts'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import { freePort } from '../../test/kit/free-port.ts'
import { until } from '../../test/kit/until.ts'
import { kubeconfigOf } from '../upstream/kubeconfig.ts'
import { clientOf } from '../upstream/seed.ts'
import { nodeName, type Upstream } from '../upstream/upstream.ts'
import { certificateWithKey } from './certificate-with-key.ts'
import type { Peer } from './peer.ts'

/**
 * OpenYurt's hub, from the program at `command`. It finds its certificates made, so that nothing
 * has to sign any, and takes the kubelet to be well although none renews a lease.
 */
export const yurthub = (command: string | undefined): Peer => ({
  name: 'yurthub',
  missing: () => (command === undefined ? 'no --yurthub=FILE' : undefined),
  async start(upstream, workspace) {
    if (command === undefined) throw new Error('no --yurthub=FILE')
    const [proxy, secure, shared, serve] = [
      await freePort(),
      await freePort(),
      await freePort(),
      await freePort(),
    ]
    const { node } = upstream
    const admin = clientOf(upstream.admin)
    await allowYurthub(admin)
    admin.close()
    const flags = yurthubFlags(workspace, node, {
      nodeName,
      pool: 'bench',
      ports: { proxy, secure, serve },
    })
    const ops = new ApiClient(`http://127.0.0.1:${serve}`)
    const healthy = async (value: 0 | 1): Promise<boolean> => {
      const { status, body } = await ops.get('/metrics')
      const found = /^node_yurthub_server_healthy_status\{.*\} (\d)$/m.exec(body.toString())
      return status === 200 && found?.[1] === String(value)
    }
    const daemon = new Daemon(workspace, 'yurthub', {
      command,
      args: [
        ...flags,
        `--multiplexer-port=${shared}`,
        '--node-ip=127.0.0.1',
        '--enable-node-pool=false',
      ],
      ready: async () => (await ops.get('/v1/readyz')).status === 200,
      seconds: 120,
    })
    await daemon.start()
    const said = spawnSync(command, ['--version'], { encoding: 'utf8' }).stdout
    return {
      name: 'yurthub',
      target: { url: `http://127.0.0.1:${proxy}` },
      description: `yurthub ${/v\d+\.\d+\.\d+[\w.+-]*/.exec(said)?.[0] ?? 'of unknown version'}`,
      processId: daemon.id,
      whenOffline: () => until('yurthub to be offline', () => healthy(0)).then(done),
      whenOnline: () => until('yurthub to be online', () => healthy(1)).then(done),
    }
  },
})

interface YurthubOptions {
  readonly nodeName: string
  readonly pool: string
  readonly ports: { readonly proxy: number; readonly secure: number; readonly serve: number }
}

/**
 * Makes its folder with the certificates of a node in it, and returns its flags. Its own informers
 * go through itself and are known by the name of its program, which has to be `yurthub`: under any
 * other it filters their first list, and waits for that very list to do so.
 */
export function yurthubFlags(
  workspace: Workspace,
  node: Upstream['node'],
  { nodeName, pool, ports }: YurthubOptions,
): string[] {
  const folder = workspace.file('yurthub')
  mkdirSync(workspace.file('yurthub', 'pki'), { recursive: true })
  const both = certificateWithKey(node, workspace)
  const pki = (name: string): string => workspace.file('yurthub', 'pki', name)
  for (const name of ['yurthub-current.pem', 'yurthub-server-current.pem'])
    copyFileSync(both, pki(name))
  if (node.ca !== undefined) copyFileSync(node.ca, pki('ca.crt'))
  const config = workspace.file('yurthub', 'yurthub.conf')
  const current = pki('yurthub-current.pem')
  writeFileSync(config, kubeconfigOf({ ...node, certificate: current, key: current }))
  return [
    `--server-addr=${node.url}`,
    `--node-name=${nodeName}`,
    `--nodepool-name=${pool}`,
    `--root-dir=${folder}`,
    `--disk-cache-path=${workspace.file('yurthub', 'cache')}`,
    `--bootstrap-file=${config}`,
    `--proxy-port=${ports.proxy}`,
    `--proxy-secure-port=${ports.secure}`,
    `--serve-port=${ports.serve}`,
    '--enable-dummy-if=false',
    '--kubelet-health-grace-period=24h',
  ]
}

/** What its chart gives it, as far as it is used here: without, it waits for ever. */
export async function allowYurthub(client: ApiClient): Promise<void> {
  const group = 'rbac.authorization.k8s.io'
  const metadata = { name: 'yurt-hub' }
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }]
  const roleRef = { apiGroup: group, kind: 'ClusterRole', name: metadata.name }
  const subjects = [{ apiGroup: group, kind: 'Group', name: 'system:nodes' }]
  // An API server that has no roles has nothing to allow either.
  await client.post(`/apis/${group}/v1/clusterroles`, { metadata, rules })
  await client.post(`/apis/${group}/v1/clusterrolebindings`, { metadata, roleRef, subjects })
}

const done = (): void => undefined
