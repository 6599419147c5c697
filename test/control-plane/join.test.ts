import { mkdirSync, writeFileSync } from 'node:fs'
import { join as joinPath } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import type { Command } from '../../src/cli/command.ts'
import { join } from '../../src/cli/join-command.ts'
import { leave } from '../../src/cli/leave-command.ts'
import { NodeFiles } from '../../src/node/join/node-files.ts'
import { ApiClient } from '../kit/cluster/api-client.ts'
import { Daemon } from '../kit/cluster/daemon.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { openWorkspace } from '../kit/cluster/workspace.ts'
import {
  type ControlPlane,
  noControlPlane,
  nodeSubject,
  startControlPlane,
} from '../kit/control-plane.ts'
import { freePort } from '../kit/free-port.ts'
import { noKubelet, startKubelet } from '../kit/kubelet.ts'
import { treeOf } from '../node/join/node-root.ts'
import { makeHostNetworkPool } from './host-network-pool.ts'
import { busyboxPod } from './pod.ts'
import { nodeReady, podRunning } from './seen.ts'

t.setTimeout(240_000)

const skip = noControlPlane() ?? noKubelet() ?? false
const nodeName = 'edge-1'
const nodePath = `/api/v1/nodes/${nodeName}`

void t.test(
  'a kubelet with the files of join is Ready and runs a pod on the host network, with a loopback network only',
  { skip, timeout: 240_000 },
  async (t) => {
    const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
    await makeHostNetworkPool(plane, 'kiosks')
    const workspace = openWorkspace(t)
    const node = workspace.file('node')
    mkdirSync(node)
    writeFileSync(
      joinPath(node, 'kubeadm-flags.env'),
      'KUBELET_KUBEADM_ARGS="--network-plugin=cni --cni-conf-dir=/etc/cni/net.d --bootstrap-kubeconfig=/not/there"\n',
    )
    const before = treeOf(node, '/hub')
    const securePort = await freePort()
    const kubeletKubeconfig = plane.kubeconfig(nodeSubject(nodeName))
    const places = [`--root-dir=${node}/hub`, `--cni-conf-dir=${node}/net.d`]
    const joining = (): Promise<string> =>
      done(join, [
        '--nodepool-name=kiosks',
        `--kubelet-kubeconfig=${kubeletKubeconfig}`,
        `--hub-kubeconfig=${node}/kubelet-nodehub.conf`,
        `--kubelet-flags=${node}/kubeadm-flags.env`,
        `--manifest-dir=${node}/manifests`,
        `--proxy-secure-port=${securePort}`,
        // This machine may have systemd, and has programs of its own.
        '--dummy-interface=false',
        '--host-command=false',
        ...places,
      ])
    t.match(await joining(), `wrote ${node}/kubeadm-flags.env`)
    const joined = treeOf(node)

    const hub = await startHub(plane, node)
    const files = new NodeFiles('/')
    const flags = /^KUBELET_KUBEADM_ARGS="(.*)"$/m.exec(files.text(`${node}/kubeadm-flags.env`))
    await startKubelet(t, {
      nodeName,
      kubeconfig: kubeletKubeconfig,
      clientCa: plane.pki.ca.certificate,
      networkFolder: `${node}/net.d`,
      // As a unit has it: the flags of the environment file come last.
      flags: ['--bootstrap-kubeconfig=/not/there', ...(flags?.[1]?.split(' ') ?? [])],
    })

    await t.test('the registered Node has its labels', async (t) => {
      await nodeReady(plane.admin, nodeName)
      t.match(await labelsOf(plane), {
        'apps.openyurt.io/nodepool': 'kiosks',
        'nodepool.openyurt.io/hostnetwork': 'true',
      })
    })

    await t.test('a pod runs on its network', async (t) => {
      const pod = busyboxPod('host') as { spec: object }
      const spec = { ...pod.spec, hostNetwork: true }
      await plane.admin.post('/api/v1/namespaces/default/pods', { ...pod, spec })
      const { status } = await podRunning(plane.admin, 'host')
      t.match(status, { podIP: /^198\.18\./ }, 'the address of the node')
    })

    await t.test(
      'the kubelet goes through the hub, whose plain port refuses every caller',
      async (t) => {
        const { body } = await hub.ops.get('/metrics')
        t.match(body.toString(), /nodehub_requests_total\{[^}]*component="kubelet"/)
        t.equal((await new ApiClient(hub.plainUrl).get('/')).status, 401)
      },
    )

    await t.test('joining again restores a removed label of the Node', async (t) => {
      const patch = JSON.stringify({ metadata: { labels: { 'apps.openyurt.io/nodepool': null } } })
      await plane.admin.send('PATCH', nodePath, patch, 'application/merge-patch+json')
      t.match(await joining(), /^nothing to change\nlabelled node edge-1/)
      t.match(await labelsOf(plane), { 'apps.openyurt.io/nodepool': 'kiosks' })
      t.strictSame(withoutState(treeOf(node)), withoutState(joined))
    })

    await t.test('leave restores every byte, and joining again is as before', async (t) => {
      t.match(await done(leave, places), `rolled back ${node}/kubeadm-flags.env`)
      t.strictSame(treeOf(node, '/hub'), before)
      await joining()
      t.strictSame(withoutState(treeOf(node)), withoutState(joined))
    })
  },
)

const endOfCertificate = '-----END CERTIFICATE-----'

/**
 * Without what the hub writes while it runs: of the authorities that clients are given, the
 * cluster's behind its own.
 */
const withoutState = (tree: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(tree)
      .filter(([name]) => !/^hub\/(?!joined|pki\/ca)/.test(name))
      .map(([name, content]) => [
        name,
        name === 'hub/pki/ca.crt'
          ? content.slice(0, content.indexOf(endOfCertificate) + endOfCertificate.length)
          : content,
      ]),
  )

/** Runs a command that has to succeed; resolves to what it printed. */
async function done(command: Command, argv: readonly string[]): Promise<string> {
  const said = { out: '', err: '' }
  const code = await command.run(argv, {
    out: (text) => (said.out += text),
    err: (text) => (said.err += text),
  })
  if (code !== 0) throw new Error(`it ended with ${code}: ${said.err}`)
  return said.out
}

async function labelsOf(plane: ControlPlane): Promise<unknown> {
  const { metadata } = (await plane.admin.get(nodePath)).json()
  return (metadata as { labels?: unknown }).labels
}

/**
 * The hub as the static pod has it, but for its credentials, which are not where a kubelet rotates
 * them, and free ports.
 */
async function startHub(
  plane: ControlPlane,
  node: string,
): Promise<{ ops: ApiClient; plainUrl: string }> {
  const manifest = parse(new NodeFiles('/').text(`${node}/manifests/nodehub.yaml`)) as {
    spec: { containers: { args: string[] }[] }
  }
  const args = manifest.spec.containers[0]?.args ?? []
  const [servePort, plainPort] = [await freePort(), await freePort()]
  const ops = new ApiClient(`http://127.0.0.1:${servePort}`)
  const [command, all] = plainNode(
    joinPath(import.meta.dirname, '..', '..', 'src', 'main.ts'),
    ...args.filter((arg) => !arg.startsWith('--bootstrap-mode')),
    `--kubeconfig=${plane.kubeconfig(nodeSubject(nodeName))}`,
    `--node-name=${nodeName}`,
    `--serve-port=${servePort}`,
    `--proxy-port=${plainPort}`,
  )
  await new Daemon(plane.workspace, 'hub', {
    command,
    args: [...all],
    ready: async () => (await ops.get('/readyz')).status === 200,
  }).start()
  return { ops, plainUrl: `http://127.0.0.1:${plainPort}` }
}
