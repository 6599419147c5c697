import { writeFileSync } from 'node:fs'
import { ApiClient } from './cluster/api-client.ts'
import { findBinaries } from './cluster/binaries.ts'
import { Daemon } from './cluster/daemon.ts'
import { type CertificateFiles, Pki, type Subject } from './cluster/pki.ts'
import type { Release } from './cluster/releases.ts'
import { type Scope, type Workspace, openWorkspace } from './cluster/workspace.ts'
import { freePort } from './free-port.ts'

export interface ControlPlaneOptions {
  readonly scheduler?: boolean
  readonly controllerManager?: boolean
  /** Its flags, besides those it needs. */
  readonly controllerManagerFlags?: readonly string[]
  /** How many API servers stand on the one etcd. */
  readonly apiservers?: number
  /** Flags of the API servers, besides those they need. */
  readonly apiserverFlags?: readonly string[]
  /** Whose programs it is made of; without, whichever are found first. */
  readonly release?: Release
}

export interface ApiServer {
  readonly url: string
  readonly daemon: Daemon
}

const core = ['etcd', 'kube-apiserver', 'openssl'] as const

const binaries = [...core, 'kube-scheduler', 'kube-controller-manager'] as const

/**
 * Why no control plane can be started here, as the reason of a skipped test; `undefined` if one
 * can. Of a release only the API server is needed: envtest's archives hold no other.
 */
export function noControlPlane(release?: Release): string | undefined {
  const found = release === undefined ? findBinaries(binaries) : findBinaries(core, release)
  return 'missing' in found ? `no control plane: ${found.missing}` : undefined
}

export class ControlPlane {
  readonly workspace: Workspace
  readonly pki: Pki
  readonly etcd: Daemon
  readonly #etcdUrl: string
  readonly servers: readonly ApiServer[]
  /** A member of `system:masters`, at the first API server. */
  readonly admin: ApiClient

  constructor(
    workspace: Workspace,
    pki: Pki,
    etcd: { readonly daemon: Daemon; readonly url: string },
    servers: readonly ApiServer[],
  ) {
    this.workspace = workspace
    this.pki = pki
    this.etcd = etcd.daemon
    this.#etcdUrl = etcd.url
    this.servers = servers
    this.admin = new ApiClient(this.url, { ca: pki.ca.certificate, credentials: adminFiles(pki) })
  }

  get first(): ApiServer {
    const [first] = this.servers
    if (!first) throw new Error('a control plane has an API server')
    return first
  }

  get url(): string {
    return this.first.url
  }

  /** A client's view of any server, with a certificate made for it. */
  client(subject: Subject, url = this.url): ApiClient {
    return new ApiClient(url, {
      ca: this.pki.ca.certificate,
      credentials: this.credentials(subject),
    })
  }

  /** Forgets all history up to now, as API servers have it done every five minutes. */
  async compact(): Promise<void> {
    const etcd = new ApiClient(this.#etcdUrl)
    const range = { key: Buffer.from('/registry/').toString('base64') }
    const { body } = await etcd.post('/v3/kv/range', range)
    const { header } = JSON.parse(body.toString()) as { header: { revision: string } }
    const { status } = await etcd.post('/v3/kv/compaction', { revision: header.revision })
    if (status !== 200) throw new Error(`etcd answered ${status}`)
  }

  credentials(subject: Subject): CertificateFiles {
    return this.pki.client(fileName(subject), subject)
  }

  /**
   * A kubeconfig file for `subject` at `server`, whom `authority` vouches for; a plain `http://`
   * server is given no credentials.
   */
  kubeconfig(subject: Subject, server = this.url, authority = this.pki.ca.certificate): string {
    const plain = server.startsWith('http://')
    const { certificate, key } = this.credentials(subject)
    const port = new URL(server).port
    return writeKubeconfig(this.workspace, `${fileName(subject)}-${port}`, {
      server,
      cluster: plain ? {} : { 'certificate-authority': authority },
      user: plain ? {} : { 'client-certificate': certificate, 'client-key': key },
    })
  }

  /** A kubeconfig file for who brings a token to `server`, whom `authority` vouches for. */
  tokenKubeconfig(name: string, token: string, server: string, authority: string): string {
    return writeKubeconfig(this.workspace, name, {
      server,
      cluster: { 'certificate-authority': authority },
      user: { token },
    })
  }
}

export const administrator: Subject = { commonName: 'admin', organizations: ['system:masters'] }

export const nodeSubject = (nodeName: string): Subject => ({
  commonName: `system:node:${nodeName}`,
  organizations: ['system:nodes'],
})

/** Starts a control plane on loopback; all of it ends with the test. */
export async function startControlPlane(
  t: Scope,
  {
    scheduler = false,
    controllerManager = false,
    controllerManagerFlags = [],
    apiservers = 1,
    apiserverFlags = [],
    release,
  }: ControlPlaneOptions = {},
): Promise<ControlPlane> {
  const wanted = { 'kube-scheduler': scheduler, 'kube-controller-manager': controllerManager }
  const found = findBinaries(
    binaries.filter((name) => wanted[name as keyof typeof wanted] !== false),
    release,
  )
  if ('missing' in found) throw new Error(found.missing)
  const { paths } = found
  const workspace = openWorkspace(t)
  const pki = new Pki(paths.openssl, workspace)
  const etcd = await startEtcd(workspace, paths.etcd)
  const servers = await Promise.all(
    Array.from({ length: apiservers }, (_, at) =>
      startApiServer(workspace, pki, paths['kube-apiserver'], `kube-apiserver-${at}`, [
        `--etcd-servers=${etcd.url}`,
        ...apiserverFlags,
      ]),
    ),
  )
  const plane = new ControlPlane(workspace, pki, etcd, servers)
  t.teardown(() => plane.admin.close())
  await Promise.all([
    controllerManager &&
      startControllerManager(plane, paths['kube-controller-manager'], controllerManagerFlags),
    scheduler && startScheduler(plane, paths['kube-scheduler']),
  ])
  return plane
}

async function startEtcd(
  workspace: Workspace,
  command: string,
): Promise<{ daemon: Daemon; url: string }> {
  const [port, peerPort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`
  const peerUrl = `http://127.0.0.1:${peerPort}`
  const client = new ApiClient(url)
  const etcd = new Daemon(workspace, 'etcd', {
    command,
    args: [
      '--name=test',
      `--data-dir=${workspace.file('etcd')}`,
      '--unsafe-no-fsync',
      '--log-level=warn',
      `--listen-client-urls=${url}`,
      `--advertise-client-urls=${url}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=test=${peerUrl}`,
    ],
    ready: async () => (await client.get('/health')).status === 200,
  })
  return { daemon: await etcd.start(), url }
}

const serviceNetwork = '10.96.0.0/16'

async function startApiServer(
  workspace: Workspace,
  pki: Pki,
  command: string,
  name: string,
  flags: readonly string[],
): Promise<ApiServer> {
  const port = await freePort()
  const serving = pki.server('kube-apiserver', { commonName: 'kube-apiserver' }, [
    'IP:127.0.0.1',
    'IP:10.96.0.1',
    'DNS:localhost',
    'DNS:kubernetes.default.svc',
  ])
  const admin = adminFiles(pki)
  const url = `https://127.0.0.1:${port}`
  const client = new ApiClient(url, { ca: pki.ca.certificate, credentials: admin })
  const daemon = new Daemon(workspace, name, {
    command,
    args: [
      ...flags,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      '--endpoint-reconciler-type=none',
      `--secure-port=${port}`,
      `--tls-cert-file=${serving.certificate}`,
      `--tls-private-key-file=${serving.key}`,
      `--client-ca-file=${pki.ca.certificate}`,
      `--kubelet-client-certificate=${admin.certificate}`,
      `--kubelet-client-key=${admin.key}`,
      '--kubelet-preferred-address-types=InternalIP',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${pki.serviceAccountKey.public}`,
      `--service-account-signing-key-file=${pki.serviceAccountKey.private}`,
      `--service-cluster-ip-range=${serviceNetwork}`,
      '--authorization-mode=Node,RBAC',
      '--enable-admission-plugins=NodeRestriction',
      '--allow-privileged=true',
    ],
    ready: async () => (await client.get('/readyz')).status === 200,
  })
  await daemon.start()
  return { url, daemon }
}

/**
 * Without the controllers that would take a node's silence for its death: tests cut nodes off for a
 * while.
 */
const startControllerManager = (
  plane: ControlPlane,
  command: string,
  flags: readonly string[],
): Promise<Daemon> =>
  startController(plane, 'kube-controller-manager', command, {
    flags: [
      `--service-account-private-key-file=${plane.pki.serviceAccountKey.private}`,
      `--root-ca-file=${plane.pki.ca.certificate}`,
      `--cluster-signing-cert-file=${plane.pki.ca.certificate}`,
      `--cluster-signing-key-file=${plane.pki.ca.key}`,
      '--use-service-account-credentials=true',
      '--controllers=*,-node-lifecycle-controller,-taint-eviction-controller,-pod-garbage-collector-controller',
      ...flags,
    ],
    ready: () => hasDefaultServiceAccount(plane),
  })

/** The first thing a pod needs of the controllers. */
async function hasDefaultServiceAccount(plane: ControlPlane): Promise<boolean> {
  const { status } = await plane.admin.get('/api/v1/namespaces/default/serviceaccounts/default')
  return status === 200
}

const startScheduler = (plane: ControlPlane, command: string): Promise<Daemon> =>
  startController(plane, 'kube-scheduler', command, { flags: [], ready: async () => true })

async function startController(
  plane: ControlPlane,
  name: string,
  command: string,
  { flags, ready }: { readonly flags: readonly string[]; readonly ready: () => Promise<boolean> },
): Promise<Daemon> {
  const kubeconfig = plane.kubeconfig({ commonName: `system:${name}` })
  const args = [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${await freePort()}`,
    '--leader-elect=false',
    ...flags,
  ]
  return new Daemon(plane.workspace, name, { command, args, ready }).start()
}

function adminFiles(pki: Pki): CertificateFiles {
  return pki.client(fileName(administrator), administrator)
}

const fileName = ({ commonName }: Subject): string => commonName.replaceAll(':', '-')

interface KubeconfigParts {
  readonly server: string
  readonly cluster?: object
  readonly user?: object
}

/** A kubeconfig, as JSON, which is YAML too. */
export const kubeconfigText = ({ server, cluster = {}, user = {} }: KubeconfigParts): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, ...cluster } }],
    users: [{ name: 'test', user }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  })

function writeKubeconfig(workspace: Workspace, name: string, parts: KubeconfigParts): string {
  const path = workspace.file(`${name}.kubeconfig`)
  writeFileSync(path, kubeconfigText(parts), { mode: 0o600 })
  return path
}
