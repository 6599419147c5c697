import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { writeProgramImage } from '../kit/cluster/oci-image.ts'
import { type ControlPlane, kubeconfigText, nodeSubject } from '../kit/control-plane.ts'
import type { Kubelet } from '../kit/kubelet.ts'
import { type BareNode, openBareNode } from './bare-node.ts'
import type { BuiltImage } from './image/build.ts'

export const yurthubManifest = '/etc/kubernetes/manifests/yurt-hub.yaml'

/** A program that takes yurthub's flags, in an image. */
export interface YurthubImage {
  readonly name: string
  readonly archive: string
  /** What the container starts; absent: what the image starts. */
  readonly command?: readonly string[]
  readonly flags: readonly string[]
}

/** OpenYurt's own program; without it tests of it are skipped. */
const ownProgram = process.env['NODEHUB_TEST_YURTHUB']

/** Why there is no yurthub, as the reason of a skipped test. */
export const noYurthub = (): string | false =>
  ownProgram === undefined
    ? 'no yurthub: NODEHUB_TEST_YURTHUB names none, built with CGO_ENABLED=0'
    : !existsSync(ownProgram) && `no yurthub: there is no ${ownProgram} (NODEHUB_TEST_YURTHUB)`

export async function realYurthub(plane: ControlPlane): Promise<YurthubImage> {
  await letNodesReadConfigMaps(plane)
  const name = 'localhost/openyurt/yurthub:real'
  const archive = plane.workspace.file('yurthub.tar')
  const program = ownProgram ?? ''
  writeProgramImage(name, program, archive)
  return {
    name,
    archive,
    command: ['/yurthub'],
    flags: [
      '--bootstrap-file=/var/lib/yurthub/bootstrap-hub.conf',
      '--discovery-token-unsafe-skip-ca-verification=true',
      '--nodepool-name=kiosks',
      '--enable-node-pool=false',
    ],
  }
}

/** As the chart of OpenYurt does: without, yurthub waits for ever. */
async function letNodesReadConfigMaps({ admin }: ControlPlane): Promise<void> {
  const group = 'rbac.authorization.k8s.io'
  const metadata = { name: 'yurt-hub' }
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }]
  const roleRef = { apiGroup: group, kind: 'ClusterRole', name: metadata.name }
  const subjects = [{ apiGroup: group, kind: 'Group', name: 'system:nodes' }]
  await admin.post(`/apis/${group}/v1/clusterroles`, { metadata, rules })
  await admin.post(`/apis/${group}/v1/clusterrolebindings`, { metadata, roleRef, subjects })
}

/**
 * A hub that is yurthub to the kubelet and to `nodehub adopt`: it has yurthub's flags, ports and
 * manifest.
 */
export async function yurthubStandIn(image: BuiltImage): Promise<YurthubImage> {
  const name = 'localhost/openyurt/yurthub:stand-in'
  const words = ['/usr/local/bin/node', '--disable-sigusr1', '/app/dist/src/main.js', 'start']
  const archive = await image.startingWith(name, words)
  return { name, archive, flags: ['--bootstrap-mode=kubeletcertificate'] }
}

/** A node as `yurtadm` leaves it: its kubelet starts yurthub, and has it for its API server. */
export async function startYurthubNode(
  t: Parameters<typeof openBareNode>[0],
  plane: ControlPlane,
  { name, yurthub, images }: { name: string; yurthub: YurthubImage; images: readonly string[] },
): Promise<{ node: BareNode; kubelet: Kubelet }> {
  const port = Number(new URL(plane.url).port)
  const node = await openBareNode(t, plane, {
    name,
    port,
    images: [yurthub.archive, ...images],
    staticPodPath: '/etc/kubernetes/manifests',
  })
  node.addPodNetwork()
  const ca = readFileSync(plane.pki.ca.certificate)
  const { certificate, key } = plane.credentials(nodeSubject(name))
  const pair = Buffer.concat([readFileSync(certificate), readFileSync(key)])
  node.write('/etc/kubernetes/pki/ca.crt', ca)
  node.write('/var/lib/kubelet/pki/kubelet-client-current.pem', pair)
  const hub = { server: 'http://127.0.0.1:10261' }
  node.write('/var/lib/openyurt/kubelet.conf', kubeconfigText(hub))
  node.write('/var/lib/yurthub/pki/ca.crt', ca)
  // It finds its certificates made, so that nothing has to sign any.
  for (const name of ['yurthub-current.pem', 'yurthub-server-current.pem'])
    node.write(`/var/lib/yurthub/pki/${name}`, pair)
  const own = '/var/lib/yurthub/pki/yurthub-current.pem'
  node.write(
    '/var/lib/yurthub/bootstrap-hub.conf',
    kubeconfigText({
      server: plane.url,
      cluster: { 'certificate-authority': '/var/lib/yurthub/pki/ca.crt' },
      user: { 'client-certificate': own, 'client-key': own },
    }),
  )
  const flags = [...yurthub.flags, `--node-ip=${node.network.address}`]
  node.write(yurthubManifest, JSON.stringify(manifestOf({ ...yurthub, flags }, plane.url)))
  node.configureKubelet()
  const kubelet = await node.startKubeletWith('--kubeconfig=/var/lib/openyurt/kubelet.conf')
  return { node, kubelet }
}

/** The static pod of OpenYurt's chart, as far as it matters to a node. */
const manifestOf = ({ name, command, flags }: YurthubImage, server: string): object => {
  const all = [
    `--server-addr=${server}`,
    '--node-name=$(NODE_NAME)',
    '--namespace=kube-system',
    '--working-mode=edge',
    '--root-dir=/var/lib/yurthub',
    '--disk-cache-path=/var/lib/yurthub/cache',
    '--enable-dummy-if=false',
    ...flags,
  ]
  const folders = ['/var/lib/yurthub', '/etc/kubernetes', '/var/lib/kubelet/pki']
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'yurt-hub', namespace: 'kube-system', labels: { 'k8s-app': 'yurt-hub' } },
    spec: {
      hostNetwork: true,
      priorityClassName: 'system-node-critical',
      priority: 2_000_001_000,
      terminationGracePeriodSeconds: 5,
      containers: [
        {
          name: 'yurt-hub',
          image: name,
          imagePullPolicy: 'Never',
          ...(command === undefined ? { args: all } : { command: [...command, ...all] }),
          env: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
          volumeMounts: folders.map((mountPath, i) => ({ name: `folder-${i}`, mountPath })),
        },
      ],
      volumes: folders.map((path, i) => ({ name: `folder-${i}`, hostPath: { path } })),
    },
  }
}

/** What tells a file of the node from a copy: inode, size, mode and time of change. */
export const stampOf = (node: BareNode, path: string): string =>
  execFileSync(...node.network.inside('stat', ['--format=%i %s %a %y', path]), {
    encoding: 'utf8',
  })
