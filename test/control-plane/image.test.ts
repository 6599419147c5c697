import { execFile } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { parse } from 'yaml'
import {
  type ControlPlane,
  noControlPlane,
  nodeSubject,
  startControlPlane,
} from '../kit/control-plane.ts'
import { openWorkspace } from '../kit/cluster/workspace.ts'
import { startCloud } from '../kit/hub.ts'
import { startHubProcess } from '../kit/hub-process.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { noKubelet, startKubelet } from '../kit/kubelet.ts'
import { buildImage, hubImage, noImageTools } from './image/build.ts'
import { busyboxPod } from './pod.ts'
import { nodeReady, objectThat, podRunning } from './seen.ts'

t.setTimeout(600_000)

const exec = promisify(execFile)
const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const nodeName = 'edge-1'

/** The static pod stands on the node's own network, at the ports that clients know. */
const ports = [10261, 10267]
const taken = (await Promise.all(ports.map(isTaken))).some((each) => each)
const skip =
  noControlPlane() ??
  noKubelet() ??
  noImageTools() ??
  (taken ? `something listens on ${ports.join(' or ')}` : false)

void t.test(
  'a kubelet starts the hub from image and static pod, and uses it as its API server',
  { skip, timeout: 400_000 },
  async (t) => {
    const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
    const image = await buildImage(plane.workspace)
    const staticPodPath = await writeStaticPod(plane)
    await startKubelet(t, {
      nodeName,
      kubeconfig: plane.kubeconfig(nodeSubject(nodeName), `http://127.0.0.1:${ports[0]}`),
      clientCa: plane.pki.ca.certificate,
      staticPodPath,
      images: [image.archive],
    })

    await nodeReady(plane.admin, nodeName)
    await plane.admin.post('/api/v1/namespaces/default/pods', busyboxPod('first'))
    await podRunning(plane.admin, 'first')
    const mirror = await objectThat(
      plane.admin,
      `/api/v1/namespaces/kube-system/pods/nodehub-${nodeName}`,
      ({ status }) => status?.containerStatuses?.every(({ ready }) => ready),
    )
    t.strictSame(
      mirror.status?.containerStatuses?.map(({ name, restartCount }) => [name, restartCount]),
      [['nodehub', 0]],
    )
  },
)

interface Bill {
  readonly components: readonly { readonly name: string; readonly version: string }[]
}

/** Name and version of each package that lies there. */
const packagesIn = (folder: string): string[] =>
  globSync('**/node_modules/{*,@*/*}/package.json', { cwd: folder })
    .map(
      (path) =>
        JSON.parse(readFileSync(join(folder, path), 'utf8')) as Partial<Bill['components'][number]>,
    )
    .flatMap(({ name, version }) => (version === undefined ? [] : [`${name}@${version}`]))
    .toSorted()

void t.test(
  'the image has an SBOM and a health check, and is the same for arm64',
  { skip: noImageTools() ?? false, timeout: 400_000 },
  async (t) => {
    const image = await buildImage(openWorkspace(t))
    const bytes = await image.bytes()
    t.ok(bytes < 100e6, `${(bytes / 1e6).toFixed(1)} MB to pull`)
    await using amd64 = await image.open()
    const bill = JSON.parse(readFileSync(join(amd64.root, 'app/sbom.cdx.json'), 'utf8')) as Bill
    t.strictSame(
      bill.components.map(({ name, version }) => `${name}@${version}`).toSorted(),
      packagesIn(join(amd64.root, 'app')),
    )

    const hub = await startHubProcess(t, { upstreams: [await startCloud(t)] })
    const well = (): Promise<number> =>
      amd64.run(amd64.healthCheck, { NODEHUB_SERVE_PORT: String(hub.opsPort) })
    t.equal(await well(), 0)
    hub.kill()
    await hub.ended()
    t.equal(await well(), 1)

    await using arm64 = await image.forArm64()
    t.strictSame([amd64.architecture, arm64.architecture], ['amd64', 'arm64'])
    t.equal(readFileSync(join(arm64.root, 'usr/local/bin/node'), 'utf8'), 'for another processor')
    await exec('diff', ['-r', join(amd64.root, 'app'), join(arm64.root, 'app')])
    t.strictSame(arm64.healthCheck, amd64.healthCheck)
  },
)

interface StaticPod {
  readonly spec: { readonly volumes: { name: string; hostPath: { path: string } }[] }
}

/**
 * The manifest as it is printed for operators, but for the host's folders, in whose place there are
 * some of the workspace.
 */
async function writeStaticPod(plane: ControlPlane): Promise<string> {
  const printing = plainNode(
    main,
    'manifests',
    '--part=static-pod',
    `--image=${hubImage}`,
    `--server-addr=${plane.url}`,
    `--node-name=${nodeName}`,
    '--kubeconfig=/etc/kubernetes/hub.kubeconfig',
  )
  const { stdout } = await exec(...printing)
  const pod = parse(stdout) as StaticPod
  for (const { name, hostPath } of pod.spec.volumes) {
    hostPath.path = plane.workspace.file(`host-${name}`)
    mkdirSync(hostPath.path)
  }
  writeCredentials(plane, plane.workspace.file('host-kubernetes'))
  const folder = plane.workspace.file('manifests')
  mkdirSync(folder)
  writeFileSync(join(folder, 'nodehub.yaml'), JSON.stringify(pod))
  return folder
}

/** What a node has under /etc/kubernetes: a kubeconfig whose files lie beside it. */
function writeCredentials(plane: ControlPlane, folder: string): void {
  const { certificate, key } = plane.credentials(nodeSubject(nodeName))
  copyFileSync(plane.pki.ca.certificate, join(folder, 'ca.crt'))
  copyFileSync(certificate, join(folder, 'node.crt'))
  copyFileSync(key, join(folder, 'node.key'))
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server: plane.url, 'certificate-authority': 'ca.crt' } }],
    users: [{ name: 'test', user: { 'client-certificate': 'node.crt', 'client-key': 'node.key' } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  }
  writeFileSync(join(folder, 'hub.kubeconfig'), JSON.stringify(config))
}

async function isTaken(port: number): Promise<boolean> {
  const server = createServer()
  server.listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return true
  }
  server.close()
  await once(server, 'close')
  return false
}
