import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { Daemon } from '../../test/kit/cluster/daemon.ts'
import type { NodeNetwork } from '../../test/kit/cluster/node-network.ts'
import { plainNode } from '../../test/kit/cluster/plain-node.ts'
import { type ControlPlane, nodeSubject } from '../../test/kit/control-plane.ts'
import { freePort } from '../../test/kit/free-port.ts'
import { until } from '../../test/kit/until.ts'
import { allowYurthub, yurthubFlags } from '../peers/yurthub.ts'
import { pool, type Propagation } from './arms.ts'

/** What a kubelet has for its API server. */
export interface Hub {
  readonly daemon: Daemon
  /** Its address, as its node has it. */
  readonly url: string
  /** The file of who vouches for it, where it speaks TLS. */
  readonly authority?: string
  /** Resolves when it goes by that for new pods. */
  readonly propagate: (mode: Propagation) => Promise<void>
}

/** Ours, in the network of a node, of a host-network pool where `pool` names one. */
export async function startNodehub(
  plane: ControlPlane,
  network: NodeNetwork,
  { name, pool: ofPool }: { readonly name: string; readonly pool: string | undefined },
): Promise<Hub> {
  const [securePort, servePort] = [await freePort(), await freePort()]
  const root = network.workspace.file('hub')
  const config = network.workspace.file('hub.yaml')
  const write = (mode: Propagation): void =>
    writeFileSync(config, `host-network-propagation: ${mode}\n`)
  write('off')
  const [node, script] = plainNode(
    join(import.meta.dirname, '..', '..', 'src', 'main.ts'),
    'start',
    `--server-addr=${plane.url}`,
    `--kubeconfig=${plane.kubeconfig(nodeSubject(name))}`,
    `--node-name=${name}`,
    ...(ofPool === undefined ? [] : [`--nodepool-name=${ofPool}`, '--host-network-node']),
    '--plain-proxy=false',
    `--config=${config}`,
    '--enable-dummy-if=false',
    '--heartbeat-interval-seconds=1',
    `--proxy-secure-port=${securePort}`,
    `--serve-port=${servePort}`,
    `--root-dir=${root}`,
  )
  const [command, args] = network.inside(node, script)
  const ops = `http://127.0.0.1:${servePort}`
  const daemon = await new Daemon(network.workspace, 'hub', {
    command,
    args,
    ready: async () => (await network.fetch(`${ops}/readyz`)) !== undefined,
    seconds: 120,
  }).start()
  const report = async (): Promise<JsonObject> =>
    JSON.parse((await network.fetch(`${ops}/inspect/host-network`)) ?? '{}') as JsonObject
  return {
    daemon,
    url: `https://127.0.0.1:${securePort}`,
    authority: join(root, 'pki', 'ca.crt'),
    async propagate(mode) {
      write(mode)
      process.kill(daemon.id, 'SIGHUP')
      await until(`mode ${mode}`, async () => {
        const { mode: has, hostNetworkPool } = await report()
        const knowsPool = ofPool === undefined || mode === 'off' || hostNetworkPool === true
        return has === mode && knowsPool
      })
    },
  }
}

/** OpenYurt's 1.4, whose filter is switched by a flag. */
export async function startYurthub(
  plane: ControlPlane,
  network: NodeNetwork,
  { name, program }: { readonly name: string; readonly program: string | undefined },
): Promise<Hub> {
  if (program === undefined) throw new Error('no --yurthub=FILE')
  await allowYurthub(plane.admin)
  const [proxy, secure, serve] = [await freePort(), await freePort(), await freePort()]
  const { workspace } = network
  const { certificate, key } = plane.credentials(nodeSubject(name))
  const node = { url: plane.url, ca: plane.pki.ca.certificate, certificate, key }
  const flags = yurthubFlags(workspace, node, {
    nodeName: name,
    pool,
    ports: { proxy, secure, serve },
  })
  const more = workspace.file('yurthub', 'flags')
  const write = (mode: Propagation): void =>
    writeFileSync(more, mode === 'off' ? '--disabled-resource-filters=hostnetworkpropagation' : '')
  write('on')
  let now: Propagation = 'on'
  const script = `exec "$0" "$@" $(cat ${more})`
  const [command, args] = network.inside('sh', ['-c', script, program, ...flags])
  const daemon = await new Daemon(workspace, 'yurthub', {
    command,
    args,
    ready: async () => (await network.fetch(`http://127.0.0.1:${serve}/v1/healthz`)) !== undefined,
    seconds: 120,
  }).start()
  return {
    daemon,
    url: `http://127.0.0.1:${proxy}`,
    async propagate(mode) {
      if (mode === now) return
      now = mode
      write(mode)
      await daemon.restart()
    },
  }
}
