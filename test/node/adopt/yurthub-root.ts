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

/** The units that yurtadm writes, with a link by which systemd starts yurthub at boot. */
export function addUnits(root: string, line = `--node-name=edge-1 ${server} $A $B`): void {
  const folder = join(root, '/etc/systemd/system')
  const all = {
    'yurthub.service':
      '[Unit]\nDescription=YurtHub\n\n[Service]\nExecStart=/usr/local/bin/yurthub\n',
    'yurthub.service.d/10-yurthub.conf': `[Service]
Environment="A=--bootstrap-mode=kubeletcertificate" # no comment
Environment="B=--v=2 --namespace=kube-system"
ExecStart=
ExecStart=/usr/local/bin/yurthub ${line}
`.replace(' # no comment', ''),
  }
  for (const [name, content] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  mkdirSync(join(folder, 'multi-user.target.wants'))
  symlinkSync('../yurthub.service', join(folder, 'multi-user.target.wants/yurthub.service'))
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
