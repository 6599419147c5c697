import { readFileSync, lstatSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { AdoptionSettings } from '../../../src/node/adopt/plan.ts'
import type { NodeControl } from '../../../src/node/adopt/swap.ts'
import { nodeRoot } from '../join/node-root.ts'

export const manifest = '/etc/kubernetes/manifests/yurt-hub.yaml'

/** The static pod that OpenYurt's chart makes, with these flags and members of its container. */
export const yurthubPod = (flags: readonly string[], more: object = {}): string =>
  `# kept\n${JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'yurt-hub', namespace: 'kube-system' },
    spec: {
      hostNetwork: true,
      containers: [
        {
          name: 'yurt-hub',
          image: 'openyurt/yurthub:v1.6.1',
          command: ['yurthub', ...flags],
          env: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
          ...more,
        },
      ],
    },
  })}\n`

export const server = '--server-addr=https://10.0.0.1:6443'

/** The unit that yurtadm writes, with the link by which systemd starts it, and its process. */
export function addUnit(root: string): void {
  const folder = '/etc/systemd/system'
  const words = ['/usr/local/bin/yurthub', server, '--bootstrap-mode=kubeletcertificate', '--v=2']
  const all = {
    [`${folder}/yurthub.service`]: '[Service]\nExecStart=/usr/local/bin/yurthub $ARGS\n',
    '/proc/17/cmdline': 'sh\0-c\0yurthub\0',
    '/proc/17/cgroup': '0::/system.slice/yurthub.service\n',
    '/proc/18/cmdline': '/usr/local/bin/yurthub\0--of=another\0',
    '/proc/18/cgroup': '0::/kubepods.slice/pod7\n',
    '/proc/19/cmdline': words.map((word) => `${word}\0`).join(''),
    '/proc/19/cgroup': '0::/system.slice/yurthub.service\n',
    '/proc/19/environ': 'ARGS=--v=2\0HTTPS_PROXY=http://proxy\0',
  }
  for (const [path, content] of Object.entries(all)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  mkdirSync(join(root, folder, 'multi-user.target.wants'))
  symlinkSync('../yurthub.service', join(root, folder, 'multi-user.target.wants/yurthub.service'))
}

const credential = (name: string): string =>
  readFileSync(`test/fixtures/credentials/${name}`, 'utf8')

/** A node of kubeadm with a yurthub in a static pod, whose manifest has a time of its own. */
export function yurthubRoot(
  root: string,
  {
    pod = yurthubPod(['--v=2', server, '--node-name=$(NODE_NAME)']),
    files = {},
  }: { pod?: string | null; files?: Record<string, string> } = {},
): string {
  nodeRoot(root, {
    files: {
      '/etc/kubernetes/pki/ca.crt': credential('ca.crt'),
      '/var/lib/yurthub/kept': 'by yurthub',
      ...(pod !== null && { [manifest]: pod }),
      ...files,
    },
  })
  if (pod !== null) utimesSync(join(root, manifest), 1_600_000_000.5, 1_500_000_000.25)
  return root
}

/** Times of a file in nanoseconds, but for that of its last renaming, and its inode. */
export function identityOf(root: string, path = manifest): readonly bigint[] {
  const { ino, mtimeNs, size } = lstatSync(join(root, path), { bigint: true })
  return [ino, mtimeNs, size]
}

/** How `nodehub adopt` is run without flags. */
export const settings: AdoptionSettings = {
  root: '/',
  rootDir: '/var/lib/nodehub',
  manifestFolder: '/etc/kubernetes/manifests',
  image: 'nodehub:test',
  systemd: undefined,
  kubeconfig: undefined,
  hubCertSigner: undefined,
  reports: false,
  dropped: [],
  hostname: 'edge-1',
  more: [],
}

/** Supervisors that do at once what they are to do. */
export const obedient: NodeControl = {
  stopYurthub: async () => undefined,
  startYurthub: async () => undefined,
  startHub: async () => undefined,
  stopHub: async () => undefined,
  portsFree: async () => [],
  ready: async () => undefined,
  yurthubAnswers: async () => true,
}
