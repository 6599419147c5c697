import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { manifests } from '../../src/cli/manifests.ts'
import { nodeInstallers } from '../../src/cluster/install/nodes.ts'
import {
  type ControlPlane,
  kubeconfigText,
  nodeSubject,
  startControlPlane,
} from '../kit/control-plane.ts'
import type { Kubelet } from '../kit/kubelet.ts'
import { startSystemdSocket } from '../kit/systemd-socket.ts'
import { until } from '../kit/until.ts'
import { type BareNode, noBareNode, openBareNode } from './bare-node.ts'
import { makeHostNetworkPool } from './host-network-pool.ts'
import { labelForHub, rolledOut } from './hub-label.ts'
import { buildImage, hubImage, noImageTools } from './image/build.ts'
import { linesWithWays } from '../docs/shell-lines.ts'
import { busyboxPod } from './pod.ts'
import { leaseRenewed, nodeReady, podRunning } from './seen.ts'

t.setTimeout(1_200_000)

const skip = noBareNode() || (noImageTools() ?? false)
const name = 'edge-1'
const pods = '/api/v1/namespaces/default/pods'
const staticPod = '/etc/kubernetes/manifests/nodehub.yaml'
const nextImage = 'localhost/nodehub:next'

/** A node of kubeadm's, whose kubelet speaks to the API server itself. */
async function startNode(
  t: Parameters<typeof openBareNode>[0],
  plane: ControlPlane,
  images: readonly string[],
): Promise<BareNode> {
  const port = Number(new URL(plane.url).port)
  const manifestsFolder = '/etc/kubernetes/manifests'
  const node = await openBareNode(t, plane, { name, port, images, staticPodPath: manifestsFolder })
  const { certificate, key } = plane.credentials(nodeSubject(name))
  const pair = '/var/lib/kubelet/pki/kubelet-client-current.pem'
  const ca = '/etc/kubernetes/pki/ca.crt'
  node.write(pair, Buffer.concat([readFileSync(certificate), readFileSync(key)]))
  node.write(ca, readFileSync(plane.pki.ca.certificate))
  node.write(
    '/etc/kubernetes/kubelet.conf',
    kubeconfigText({
      server: plane.url,
      cluster: { 'certificate-authority': ca },
      user: { 'client-certificate': pair, 'client-key': pair },
    }),
  )
  node.write(
    '/var/lib/kubelet/kubeadm-flags.env',
    'KUBELET_KUBEADM_ARGS="--node-labels=apps.openyurt.io/nodepool=kiosks"\n',
  )
  node.configureKubelet()
  execFileSync(...node.network.inside('mkdir', ['-p', manifestsFolder, '/etc/cni/net.d']))
  return node
}

/**
 * What the node has written, without the kubelet's own. A folder of this machine counts as written
 * once there was a file of the node in it, and so says nothing.
 */
const filesOf = ({ network }: BareNode): readonly string[] =>
  network
    .written()
    .filter((path) => !`${path}/`.startsWith('/var/lib/kubelet/'))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)

/** Puts what is printed into the cluster. */
async function apply({ admin }: ControlPlane, ...flags: readonly string[]): Promise<void> {
  let text = ''
  await manifests.run(flags, { out: (said) => (text += said), err: () => undefined })
  for (const document of parseAllDocuments(text)) {
    const { apiVersion, kind, metadata } = document.toJS() as {
      apiVersion: string
      kind: string
      metadata: { namespace?: string; name: string }
    }
    const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
    const space = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`
    const path = `${group}${space}/${kind.toLowerCase()}s`
    const { status, body } = await admin.post(path, document.toJS() as object)
    if (status !== 201) throw new Error(`${path}: ${status} ${body.toString()}`)
  }
}

void t.test(
  'a DaemonSet installs a hub on a real kubelet’s node, an upgrade replaces it, a label removes it',
  { skip, timeout: 900_000 },
  async (t) => {
    const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
    const { admin } = plane
    const image = await buildImage(plane.workspace)
    const next = await image.named(nextImage)
    await makeHostNetworkPool(plane, 'kiosks')
    await apply(plane, '--part=nodes', `--image=${hubImage}`)
    const node = await startNode(t, plane, [image.archive, next])
    const systemd = await startSystemdSocket(t, node.network.root)
    const flags = (): readonly string[] => {
      const file = node.read('/var/lib/kubelet/kubeadm-flags.env')
      return (/^KUBELET_KUBEADM_ARGS="(.*)"$/m.exec(file)?.[1] ?? '').split(' ').filter(Boolean)
    }
    const start = (): Promise<Kubelet> =>
      node.startKubeletWith('--kubeconfig=/etc/kubernetes/kubelet.conf', ...flags())
    let kubelet = await start()
    systemd.restart = async () => {
      await kubelet.daemon.kill()
      kubelet = await start()
    }
    const ofPod = async (): Promise<readonly string[]> =>
      (await kubelet.runtime.running())
        .filter(({ pod }) => pod === 'shop')
        .map(({ id }) => id)
        .toSorted()
    const undisturbed = async (t: { strictSame(a: unknown, b: unknown): unknown }) => {
      await leaseRenewed(admin, name)
      await nodeReady(admin, name)
      t.strictSame(await ofPod(), before)
      const { status } = (await admin.get(`${pods}/shop`)).json()
      t.strictSame(
        status?.containerStatuses?.map(({ restartCount }) => restartCount),
        [0],
      )
    }

    execFileSync(
      ...node.network.inside('sh', [
        '-ec',
        `echo '{"cniVersion":"0.3.1","name":"lo","plugins":[{"type":"loopback"}]}' > /etc/cni/net.d/1.conflist`,
      ]),
    )
    await nodeReady(admin, name)
    const pod = busyboxPod('shop', { nodeName: name }) as { spec: object }
    await admin.post(pods, { ...pod, spec: { ...pod.spec, hostNetwork: true } })
    await podRunning(admin, 'shop')
    const before = await ofPod()
    t.equal(before.length, 2)
    const files = filesOf(node)

    await t.test('installed: the kubelet goes through the hub', async (t) => {
      await labelForHub(admin, name, 'install', 'Installed')
      t.strictSame(systemd.restarted, ['kubelet.service'])
      await until('the kubelet to go through the hub', async () => {
        const metrics = (await node.network.fetch(`${node.opsUrl}/metrics`)) ?? ''
        return /nodehub_requests_total\{[^}]*component="kubelet"/.test(metrics)
      })
      await undisturbed(t)
    })

    await t.test('a DaemonSet with another image upgrades its hub', async (t) => {
      const [set] = nodeInstallers({ namespace: 'kube-system', image: nextImage })
      await rolledOut(admin, 'nodehub-install', set)
      t.match(node.read(staticPod), `image: ${nextImage}`)
      t.equal(systemd.restarted.length, 1, 'the kubelet goes on')
      await undisturbed(t)
    })

    const shell = (script: string): { code: number; out: string; err: string } => {
      const [command, args] = node.network.inside('bash', ['-c', script])
      const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' })
      return { code: status ?? -1, out: stdout, err: stderr }
    }
    const livez = (): Promise<string | undefined> => node.network.fetch(`${node.opsUrl}/livez`)

    await t.test(
      'the host has the command nodehub, which says where the log of a stopped hub is',
      async (t) => {
        const status = shell('nodehub inspect status')
        t.match(status, { code: 0, out: /^nodehub \S+ on edge-1 is ready and online/, err: '' })
        t.match(shell('nodehub inspect bundle --file=/etc/edge-1.tar.gz; rm /etc/edge-1.tar.gz'), {
          code: 0,
          err: '',
        })

        shell(`mv ${staticPod} /etc/kubernetes/nodehub.yaml`)
        // Its last seconds are those of a container which the command would still enter.
        await until(
          'the container of the hub to end',
          async () =>
            !(await kubelet.runtime.running()).some(({ pod }) => pod === `nodehub-${name}`),
        )
        t.match(shell('nodehub inspect status'), {
          code: 2,
          err: /last lines are in \/var\/log\/pods\/kube-system_nodehub-\S+\.log/,
        })
        shell(`mv /etc/kubernetes/nodehub.yaml ${staticPod}`)
        await until('the hub to be back', async () => (await livez()) !== undefined)
        await undisturbed(t)
      },
    )

    await t.test('shell lines of pages for static pods', async (t) => {
      const socket = kubelet.runtime.socket
      const folder = '/etc/reader'
      // The image has another name in the pages, and its program prints what it is.
      const before = `mkdir -p ${folder}; cd ${folder}; cp ${image.archive} nodehub.tar
        ctr() { command ctr --address ${socket} "$@"; }
        command -v jq > /dev/null || jq() { cat; }`
      const lines = linesWithWays.filter(({ way }) => way === 'static pod')
      t.ok(lines.length > 3)
      for (const { line } of lines) {
        const isFunction = line.startsWith('nodehub()')
        const here = line.replaceAll('registry.example.com/nodehub:0.3.0', hubImage)
        const { code, out, err } = shell(
          `${before}\nset -eo pipefail\n${here}\n${isFunction ? 'nodehub version' : ''}`,
        )
        t.equal(code, 0, `${line}\n${out}${err}`)
        if (isFunction) t.match(out, /^nodehub \d/)
        if (line.startsWith('tail ')) t.match(out, '"msg":"ready"')
      }
      shell(`rm -r ${folder}`)
    })

    await t.test('removed: the node is as it was', async (t) => {
      await labelForHub(admin, name, 'remove', 'Removed')
      t.strictSame(systemd.restarted, ['kubelet.service', 'kubelet.service'])
      t.strictSame(filesOf(node), files)
      t.equal(await node.network.fetch(`${node.opsUrl}/livez`), undefined)
      await undisturbed(t)
    })
  },
)
