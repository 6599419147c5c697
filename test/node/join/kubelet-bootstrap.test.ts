import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join as joinPath } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { join } from '../../../src/cli/join-command.ts'
import { parseBootstrapToken } from '../../../src/config/bootstrap.ts'
import { ApiServer } from '../../../src/node/join/api-server.ts'
import { bootstrapKubelet } from '../../../src/node/join/kubelet-bootstrap.ts'
import { NodeFiles } from '../../../src/node/join/node-files.ts'
import { configMaps } from '../../../src/api/kube/resources.ts'
import { plainNode } from '../../kit/cluster/plain-node.ts'
import { joinToken, startJoinable, type JoinableCloud } from '../../kit/joinable.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const token = parseBootstrapToken(joinToken)!

function bare(t: Test, { cloud, caHash }: JoinableCloud, caHashes = [caHash]) {
  const folder = rootFolder(t)
  const paths = {
    kubeconfig: joinPath(folder, 'etc/kubelet.conf'),
    ca: joinPath(folder, 'etc/pki/ca.crt'),
    pair: joinPath(folder, 'lib/pki/kubelet-client-current.pem'),
    config: joinPath(folder, 'lib/config.yaml'),
  }
  const files = new NodeFiles('/')
  const run = () =>
    bootstrapKubelet(files, {
      nodeName: 'edge-7',
      servers: [new URL(cloud.url)],
      token,
      caHashes,
      anyCa: false,
      paths,
    })
  return { folder, files, paths, run }
}

void t.test('a bare node gets its kubelet’s credentials and config', async (t) => {
  const joinable = await startJoinable(t)
  const { sandbox } = joinable.cloud
  sandbox.create(configMaps, {
    metadata: { name: 'kubelet-config', namespace: 'kube-system' },
    data: { kubelet: 'kind: KubeletConfiguration\n' },
  })
  const { files, paths, run } = bare(t, joinable)
  t.strictSame(await run(), [])
  t.equal(readFileSync(paths.ca, 'utf8'), joinable.authority.certificate)
  t.equal(readFileSync(paths.config, 'utf8'), 'kind: KubeletConfiguration\n')
  for (const secret of [paths.kubeconfig, paths.pair])
    t.equal(statSync(secret).mode & 0o777, 0o600, secret)
  const leaf = new X509Certificate(readFileSync(paths.pair))
  t.equal(leaf.subject, 'O=system:nodes\nCN=system:node:edge-7')
  const api = new ApiServer(files, paths.kubeconfig)
  t.equal(api.nodeName, 'edge-7')
  t.equal((await api.ask('GET', '/api/v1/nodes')).status, 200)
  t.equal(sandbox.requests.at(-1)?.user?.name, 'system:node:edge-7')
})

void t.test('with a wrong CA hash or a denied CSR a node gets nothing', async (t) => {
  const joinable = await startJoinable(t)
  const wrong = bare(t, joinable, [`sha256:${'0'.repeat(64)}`])
  await t.rejects(wrong.run(), /does not name/)
  t.strictSame(readdirSync(wrong.folder), [])
  joinable.verdict = 'deny'
  const denied = bare(t, joinable)
  await t.rejects(denied.run(), /was denied/)
  t.strictSame(readdirSync(joinPath(denied.folder, 'lib/pki')), [])
  t.notOk(existsSync(denied.paths.kubeconfig))
  joinable.verdict = 'sign'
  const [note] = await denied.run()
  t.match(note, /config\.yaml is not there, and the cluster has no ConfigMap kubelet-config/)
})

const exec = promisify(execFile)

/** Folders of the node that are empty for one command, and what it leaves in them. */
const onEmptyNode = (command: readonly string[]): string =>
  [
    'mount -t tmpfs none /etc',
    'mount -t tmpfs none /var/lib',
    'mount -t tmpfs none /mnt',
    // The lock of the machine may be taken by another test.
    'mkdir -p /run/nodehub',
    'mount -t tmpfs none /run/nodehub',
    'mkdir /mnt/upper /mnt/work',
    // Over what is there: this Node may be, too.
    'mount -t overlay -o lowerdir=/usr/local/bin,upperdir=/mnt/upper,workdir=/mnt/work none /usr/local/bin',
    command.map((word) => `'${word}'`).join(' '),
    'find /etc /var/lib -type f -o -type l',
    'cat /etc/kubernetes/manifests/nodehub.yaml /var/lib/kubelet/kubeadm-flags.env',
  ].join(' && ')

const asRoot = process.getuid?.() === 0 ? false : 'only root mounts'

function joinedOnEmptyNode({ cloud, caHash }: JoinableCloud, ...flags: readonly string[]) {
  const [env, words] = plainNode(
    joinPath(import.meta.dirname, '../../../src/main.ts'),
    'join',
    '--nodepool-name=a',
    '--systemd=false',
    '--node-name=edge-7',
    `--server-addr=${cloud.url}`,
    `--join-token=${joinToken}`,
    `--discovery-token-ca-cert-hash=${caHash}`,
    ...['proxy-port', 'proxy-secure-port', 'serve-port'].map((name) => `--${name}=0`),
    ...flags,
  )
  return exec('unshare', ['--mount', 'sh', '-c', onEmptyNode([env, ...words])])
}

void t.test('a single join with a token joins a node', { skip: asRoot }, async (t) => {
  const joinable = await startJoinable(t)
  const { stdout } = await joinedOnEmptyNode(joinable, '--host-network-pool=false')
  t.match(stdout, 'the node edge-7 has joined the cluster: wrote /etc/kubernetes/kubelet.conf')
  for (const path of [
    '/etc/kubernetes/kubelet.conf',
    '/etc/kubernetes/kubelet-nodehub.conf',
    '/etc/kubernetes/pki/ca.crt',
    '/var/lib/kubelet/pki/kubelet-client-current.pem',
    '/var/lib/nodehub/pki/ca.crt',
  ])
    t.ok(stdout.split('\n').includes(path), path)
  t.match(stdout, `--server-addr=${joinable.cloud.url}`)
  t.match(stdout, '--bootstrap-mode=kubeletcertificate')
  t.match(stdout, '--kubeconfig=/etc/kubernetes/kubelet-nodehub.conf')
  t.notMatch(stdout, joinToken.split('.')[1] ?? '', 'the token is in none of the files')
})

void t.test(
  'a join that fails after the node has its certificate says what was changed',
  { skip: asRoot },
  async (t) => {
    const joinable = await startJoinable(t)
    const failed = await joinedOnEmptyNode(joinable).catch((cause: unknown) => cause)
    t.match(failed, {
      stdout: /the node edge-7 has joined the cluster/,
      stderr: /--host-network-node=true[^]*\nNothing else was changed: join again/,
    })
  },
)

void t.test('join names missing flags, and prints no token', async (t) => {
  const said = async (...flags: string[]) => {
    let text = ''
    const add = (more: string) => (text += more)
    const code = await join.run(['--nodepool-name=a', ...flags], { out: add, err: add })
    return { code, text }
  }
  const hash = `--discovery-token-ca-cert-hash=sha256:${'0'.repeat(64)}`
  const short = await said('--join-token=abcdef.0123456789')
  t.match(short, { code: 2, text: /--join-token: the value is no bootstrap token/ })
  t.notMatch(short.text, '0123456789')
  t.match(await said(`--join-token=${joinToken}`), {
    code: 2,
    text: /--join-token: --server-addr is required\n.*--discovery-token-ca-cert-hash is required/,
  })
  const image = ['--root=/mnt', '--server-addr=https://a', hash, `--join-token=${joinToken}`]
  t.match(await said(...image), { code: 2, text: /--root is for an image/ })
})
