import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { after } from '../../src/base/clock.ts'
import { storedAuthority } from '../../src/certificates/stored-authority.ts'
import { ownVersion } from '../../src/base/own-version.ts'
import { installReportIn, type InstallReport } from '../../src/api/kube/install-report.ts'
import { nodePools } from '../../src/api/kube/node-pool.ts'
import { install } from '../../src/cli/install-command.ts'
import { Adoption } from '../../src/node/adopt/adoption-record.ts'
import { NodeFiles } from '../../src/node/join/node-files.ts'
import { nodes } from '../kit/cloud.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { startTestCluster, type TestCluster } from '../kit/cluster-api.ts'
import { freePort } from '../kit/free-port.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { startSystemdSocket, type SystemdSocket } from '../kit/systemd-socket.ts'
import { until } from '../kit/until.ts'
import { nodeRoot, treeOf } from '../node/join/node-root.ts'
import { laterLog } from '../kit/log-on-disk.ts'
import { said, type Said } from '../kit/terminal.ts'

t.setTimeout(300_000)

interface Host extends TestCluster {
  readonly root: string
  readonly systemd: SystemdSocket
  readonly ports: { readonly secure: number; readonly ops: number }
  /** With which it is run. */
  readonly flags: readonly string[]
  run(...flags: string[]): Promise<Said>
  report(): InstallReport | undefined
}

const state = '/var/lib/nodehub'
const manifest = '/etc/kubernetes/manifests/nodehub.yaml'

/** A host with an API server that has its Node, and, once it has a manifest, a hub. */
async function startHost(
  t: Test,
  {
    files = {},
    labels = { 'apps.openyurt.io/nodepool': 'hn' },
    versionOf = (_manifest: string) => ownVersion(),
    startedOf = startOfEach(),
  } = {},
): Promise<Host> {
  const cluster = await startTestCluster(t)
  cluster.sandbox.create(nodePools, {
    metadata: { name: 'hn' },
    spec: { type: 'Edge', hostNetwork: true },
  })
  cluster.sandbox.create(nodes, { metadata: { name: 'edge-1', labels } })
  // The path of a socket is short.
  const root = mkdtempSync('/tmp/nodehub-')
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  nodeRoot(root, { server: cluster.sandbox.url, files })
  const systemd = await startSystemdSocket(t, root)
  const ports = { secure: await freePort(), ops: await freePort() }
  const ended = new AbortController()
  t.teardown(() => ended.abort())
  void startHub(root, ports, { versionOf, startedOf }, ended.signal)
  const flags = [
    `--root=${root}`,
    '--image=hub:1',
    `--proxy-secure-port=${ports.secure}`,
    `--serve-port=${ports.ops}`,
  ]
  return {
    ...cluster,
    root,
    systemd,
    ports,
    flags,
    run: (...more) => said((terminal) => install.run([...flags, ...more], terminal)),
    report: () => installReportIn(cluster.sandbox.get(nodes, 'edge-1') ?? {}),
  }
}

interface HubOfManifest {
  readonly versionOf: (manifest: string) => string
  readonly startedOf: (manifest: string) => number
}

/** A kubelet that starts the hub anew for each manifest. */
const startOfEach = (): HubOfManifest['startedOf'] => {
  const seen = new Map<string, number>()
  return (text) => {
    const at = seen.get(text) ?? 1_800_000_000 + seen.size
    seen.set(text, at)
    return at
  }
}

/** What a kubelet would start: ready, with a certificate of the authority that was made. */
async function startHub(
  root: string,
  ports: { secure: number; ops: number },
  { versionOf, startedOf }: HubOfManifest,
  signal: AbortSignal,
): Promise<void> {
  await until('a manifest', () => signal.aborted || existsSync(join(root, manifest)))
  if (signal.aborted) return
  const authority = await storedAuthority(join(root, state, 'pki'), () => undefined)
  const { certificate, key } = await authority.issue({
    commonName: 'hub',
    usage: 'server',
    ipAddresses: ['127.0.0.1'],
  })
  const secure = createTlsServer({ cert: certificate, key })
  const ops = createServer((_request, response) => {
    const text = readFileSync(join(root, manifest), 'utf8')
    response.end(
      `nodehub_build_info{version="${versionOf(text)}"} 1\nprocess_start_time_seconds ${startedOf(text)}\n`,
    )
  })
  for (const [server, port] of [
    [secure, ports.secure],
    [ops, ports.ops],
  ] as const) {
    // The test may have ended meanwhile: a server that is never closed keeps the process.
    if (signal.aborted) return
    server.listen(port, '127.0.0.1')
    signal.addEventListener('abort', () => server.close())
    await once(server, 'listening')
  }
}

void t.test(
  'the installer joins the host, restarts its kubelet once, and removal restores every byte',
  async (t) => {
    const host = await startHost(t)
    const before = treeOf(host.root)
    t.match(await host.run(), { code: 0, err: /Installed: as it should be/ })
    t.match(host.report(), { state: 'Installed', image: 'hub:1', version: ownVersion() })
    t.strictSame(host.systemd.restarted, ['kubelet.service'])
    const pod = readFileSync(join(host.root, manifest), 'utf8')
    for (const arg of [
      'image: hub:1',
      '--nodepool-name=hn',
      '--offline-ready-condition',
      '--host-network-node',
    ])
      t.match(pod, arg)

    const installed = treeOf(host.root)
    t.equal((await host.run()).code, 0)
    t.strictSame(treeOf(host.root), installed, 'a second time changes nothing')
    t.equal((await host.run('--image=hub:2')).code, 0)
    t.match(host.report(), { image: 'hub:2' })
    t.equal(host.systemd.restarted.length, 1, 'another image is no reason to restart the kubelet')

    t.match(await host.run('--uninstall'), { code: 0, err: /Removed/ })
    t.strictSame(treeOf(host.root), before)
    t.equal(host.systemd.restarted.length, 2)
    t.match(host.report(), { state: 'Removed' })
    t.equal((await host.run('--uninstall')).code, 0)
    t.equal(host.systemd.restarted.length, 2)
  },
)

void t.test('a refused host stays unchanged, and its Node has the reason', async (t) => {
  const refusing = async (
    why: RegExp,
    options: Parameters<typeof startHost>[1],
    prepare: (root: string) => void = () => undefined,
  ): Promise<void> => {
    const host = await startHost(t, options)
    prepare(host.root)
    const before = treeOf(host.root)
    t.match(await host.run(), { code: 1, err: why })
    t.match(host.report(), { state: 'Refused', message: why })
    t.strictSame(treeOf(host.root), before)
    t.strictSame(host.systemd.restarted, [])
  }
  await refusing(/in no pool: kubectl label node NAME apps.openyurt.io.nodepool/, {
    labels: {} as never,
  })
  await refusing(/runs yurthub \(\/etc\/kubernetes\/manifests\/yurt-hub.yaml\).*nodehub adopt/, {
    files: { '/etc/kubernetes/manifests/yurt-hub.yaml': 'kind: Pod\n' },
  })
  await refusing(/format 1000.* stays as it is/, {}, (root) => {
    mkdirSync(join(root, state, 'cache'), { recursive: true })
    laterLog(join(root, state, 'cache'))
  })
})

const annotate = (host: Host, report: object | undefined): void => {
  const { metadata, ...node } = host.sandbox.get(nodes, 'edge-1') ?? {}
  const annotations: Record<string, string> =
    report === undefined ? {} : { 'nodehub.io/install': JSON.stringify(report) }
  host.sandbox.update(nodes, { ...node, metadata: { ...(metadata as object), annotations } })
}

const yurthubManifest = '/etc/kubernetes/manifests/yurt-hub.yaml'
const noYurthub = /no yurthub starts with this node/

void t.test('a refused adoption changes nothing, and is retried', async (t) => {
  const host = await startHost(t)
  const before = treeOf(host.root)
  t.match(await host.run('--adopt'), { code: 1, err: noYurthub })
  t.match(host.report(), { state: 'Refused', message: noYurthub })
  writeFileSync(join(host.root, yurthubManifest), 'kind: Pod\n')
  const again = await host.run('--adopt')
  t.equal(again.code, 1)
  t.notMatch(again.err, noYurthub)
  rmSync(join(host.root, yurthubManifest))
  t.strictSame(treeOf(host.root), before)
  t.match(await host.run('--adopt', '--uninstall'), { code: 0, err: /Removed/ })
})

void t.test('a failed adoption is retried once its annotation is removed', async (t) => {
  const host = await startHost(t)
  const failed = { state: 'Failed', image: 'hub:1', version: '1', message: 'it was not ready' }
  annotate(host, failed)
  t.match(await host.run('--adopt'), { code: 1, err: /Failed: it was not ready/ })
  annotate(host, undefined)
  t.match(await host.run('--adopt'), { code: 1, err: noYurthub })
})

void t.test('a node that was rolled back locally is not adopted again', async (t) => {
  const host = await startHost(t)
  annotate(host, { state: 'Installed', image: 'hub:1', version: '1' })
  const why = /rolled back on the node: take its label/
  for (const image of ['hub:1', 'hub:1', 'hub:2']) {
    t.match(await host.run('--adopt', `--image=${image}`), { code: 1, err: why })
    t.match(host.report(), { state: 'Refused', message: why })
  }
  annotate(host, undefined)
  t.match(await host.run('--adopt'), { code: 1, err: noYurthub })
})

void t.test('a hub not installed by adopt is not rolled back', async (t) => {
  const host = await startHost(t)
  writeFileSync(join(host.root, manifest), 'kind: Pod\n')
  const before = treeOf(host.root, state)
  const why = /not put there by an adoption/
  t.match(await host.run('--adopt', '--uninstall'), { code: 1, err: why })
  t.match(host.report(), { state: 'Refused', message: why })
  t.strictSame(treeOf(host.root, state), before)
})

void t.test('the hub of an adopted node has the image of its DaemonSet', async (t) => {
  const versionOf = (text: string): string => (text.includes('hub:0') ? '0.1.9' : ownVersion())
  const host = await startHost(t, { versionOf })
  await storedAuthority(join(host.root, state, 'pki'), () => undefined)
  const record = {
    version: 1,
    phase: 'adopted',
    yurthub: yurthubManifest,
    start: { flags: [], variables: [] },
    aside: [],
    written: [],
    folders: [],
    ports: { proxy: 10_261, ...host.ports },
  } as const
  const adoption = new Adoption(new NodeFiles(host.root), state)
  const sha256 = '0'.repeat(64)
  adoption.write({
    ...record,
    runBy: { staticPod: manifest },
    written: [{ path: manifest, sha256 }],
  })
  const pod = 'spec:\n  containers:\n    - image: hub:0\n      args: [start]\n'
  writeFileSync(join(host.root, manifest), pod)
  mkdirSync(join(host.root, state, 'cache'), { recursive: true })
  laterLog(join(host.root, state, 'cache'))
  t.match(await host.run('--adopt'), { code: 1, err: /Refused: .*format 1000/ })
  t.equal(readFileSync(join(host.root, manifest), 'utf8'), pod)
  rmSync(join(host.root, state, 'cache'), { recursive: true })
  for (let i = 0; i < 2; i += 1) {
    t.match(await host.run('--adopt'), { code: 0, err: /Installed/ })
    t.match(host.report(), { state: 'Installed', image: 'hub:1', version: ownVersion() })
  }
  const changed = readFileSync(join(host.root, manifest), 'utf8')
  t.match(changed, /image: hub:1\n.*--offline-ready-condition/s)

  adoption.write({ ...record, runBy: { systemd: true } })
  t.match(await host.run('--adopt', '--image=hub:2'), { code: 0, err: /upgraded by its package/ })
  t.match(host.report(), { state: 'Installed', image: '' })
  t.equal(readFileSync(join(host.root, manifest), 'utf8'), changed)
})

void t.test(
  'an image of the same release is installed once its hub has started, not while the one before runs',
  async (t) => {
    let started = 1_800_000_000
    let looks = 0
    const startedOf = (text: string): number => {
      if (text.includes('hub:2')) looks += 1
      return started
    }
    const host = await startHost(t, { startedOf })
    t.match(await host.run(), { code: 0 })
    const running = host.run('--image=hub:2')
    await Promise.race([running, until('looks at the former hub', () => looks > 3)])
    t.match(host.report(), { image: 'hub:1' }, 'the kubelet has not replaced it yet')
    started += 20
    t.match(await running, { code: 0 })
    t.match(host.report(), { state: 'Installed', image: 'hub:2' })
  },
)

void t.test(
  'a kubelet that is not restarted is a failure, and the next run restarts it',
  async (t) => {
    const host = await startHost(t)
    host.systemd.result = 'failed'
    t.match(await host.run(), {
      code: 1,
      err: /Failed: the kubelet was not restarted: the job ended/,
    })
    t.match(host.report(), { state: 'Failed' })
    host.systemd.result = 'done'
    t.equal((await host.run()).code, 0)
    t.equal(host.systemd.restarted.length, 2)
  },
)

void t.test('without an API server an installed host stays installed', async (t) => {
  const host = await startHost(t)
  await host.run()
  const installed = treeOf(host.root)
  await host.sandbox[Symbol.asyncDispose]()
  t.match(await host.run(), { code: 0, err: /the Node does not say so: no API server was reached/ })
  t.strictSame(treeOf(host.root), installed)
  t.equal(host.systemd.restarted.length, 1)
})

void t.test('an installer ends at SIGTERM, and the next one goes on', async (t) => {
  let version = '0.0.0'
  const host = await startHost(t, { versionOf: () => version })
  const [program, words] = plainNode(nodehubProgram, 'install', ...host.flags)
  const child = spawn(program, words, { stdio: 'ignore' })
  const exited = once(child, 'exit')
  await until('a manifest', () => existsSync(join(host.root, manifest)))
  child.kill('SIGTERM')
  const killing = after(30_000, () => child.kill('SIGKILL'))
  t.strictSame(await exited, [1, null])
  killing[Symbol.dispose]()
  t.equal(host.report(), undefined)
  version = ownVersion()
  t.match(await host.run(), { code: 0, err: /Installed/ })
})

void t.test('install --hold ends at SIGTERM', async (t) => {
  const holding = install.run(['--hold'], { out: () => undefined, err: () => undefined })
  process.emit('SIGTERM')
  t.equal(await holding, 0)
})
