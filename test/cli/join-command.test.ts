import t from 'tap'
import fs from 'node:fs'
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import { hostname } from 'node:os'
import { dirname, join as joinPath } from 'node:path'
import { parse } from 'yaml'
import { join } from '../../src/cli/join-command.ts'
import { leave } from '../../src/cli/leave-command.ts'
import { manifests } from '../../src/cli/manifests.ts'
import { lockDirectory } from '../../src/hub/store/log/lock.ts'
import { killedAt } from '../node/join/killed.ts'
import { nodeRoot, treeOf } from '../node/join/node-root.ts'
import { rootFolder } from '../kit/root-folder.ts'
import { said, type Said } from '../kit/terminal.ts'
import { portOf } from '../kit/wire/listening.ts'

const run = (command: typeof join, argv: readonly string[]): Promise<Said> =>
  said((terminal) => command.run(argv, terminal))

const joining = (root: string, ...flags: string[]): Promise<Said> =>
  run(join, ['--nodepool-name=hn', '--host-network-pool', `--root=${root}`, ...flags])
const leaving = (root: string, ...flags: string[]): Promise<Said> =>
  run(leave, [`--root=${root}`, ...flags])

/** What the hub keeps to itself. */
const state = '/var/lib/nodehub'
const read = (root: string, path: string): string => fs.readFileSync(joinPath(root, path), 'utf8')

void t.test(
  'join writes all that a host-network node needs, and leave restores every byte',
  async (t) => {
    const root = nodeRoot(rootFolder(t))
    const before = treeOf(root, state, '/var/lib/nodehub')
    t.equal((await joining(root, '--image=hub:1')).code, 0)

    t.equal(
      read(root, '/srv/kubelet/flags.env'),
      'KUBELET_KUBEADM_ARGS="--v=2 --node-labels=apps.openyurt.io/nodepool=hn,nodepool.openyurt.io/hostnetwork=true --kubeconfig=/etc/kubernetes/kubelet-nodehub.conf --bootstrap-kubeconfig="\n',
    )
    t.equal(fs.statSync(joinPath(root, '/srv/kubelet/flags.env')).mode & 0o777, 0o640)
    t.ok(fs.lstatSync(joinPath(root, '/var/lib/kubelet/kubeadm-flags.env')).isSymbolicLink())
    t.strictSame(JSON.parse(read(root, '/etc/cni/net.d/0-loopback.conf')), {
      cniVersion: '0.3.0',
      name: 'lo',
      type: 'loopback',
    })
    t.match(parse(read(root, '/etc/kubernetes/kubelet-nodehub.conf')), {
      clusters: [
        {
          cluster: {
            server: 'https://127.0.0.1:10268',
            'certificate-authority': '/var/lib/nodehub/pki/ca.crt',
          },
        },
      ],
      users: [
        { user: { 'client-certificate': '/var/lib/kubelet/pki/kubelet-client-current.pem' } },
      ],
    })
    t.match(read(root, '/var/lib/nodehub/pki/ca.crt'), 'BEGIN CERTIFICATE')
    const { spec } = parse(read(root, '/etc/kubernetes/manifests/nodehub.yaml')) as {
      spec: { containers: { image: string; args: string[] }[] }
    }
    t.strictSame(spec.containers[0]?.args, [
      'start',
      '--server-addr=https://127.0.0.1:1',
      '--root-dir=/var/lib/nodehub',
      '--bootstrap-mode=kubeletcertificate',
      '--nodepool-name=hn',
      '--host-network-node',
      '--plain-proxy=false',
    ])
    t.equal(fs.statSync(joinPath(root, state)).mode & 0o777, 0o700)

    t.equal((await leaving(root)).code, 0)
    t.strictSame(treeOf(root, state), before)
    t.notOk(fs.existsSync(joinPath(root, '/var/lib/nodehub/joined')))
  },
)

void t.test('leave --purge deletes all of the hub’s state, and no other files', async (t) => {
  const root = nodeRoot(rootFolder(t))
  const before = treeOf(root)
  await joining(root, '--image=hub:1')
  const elsewhere = joinPath(root, 'disk')
  fs.mkdirSync(elsewhere)
  fs.writeFileSync(joinPath(elsewhere, 'objects.db'), 'Secrets')
  fs.symlinkSync(elsewhere, joinPath(root, state, 'cache'))
  fs.writeFileSync(joinPath(root, state, 'seal.key'), '')
  {
    using _hub = await lockDirectory(elsewhere)
    const refused = await leaving(root, '--purge')
    t.match(refused, { code: 1, err: /the node has left, but .* another hub, process \d+, uses/ })
  }
  t.ok(fs.existsSync(joinPath(root, state, 'seal.key')))
  fs.writeFileSync(joinPath(root, state, 'notes.txt'), '')
  t.match(await leaving(root, '--purge'), { code: 1, err: /files that no hub writes: notes.txt/ })
  fs.rmSync(joinPath(root, state, 'notes.txt'))
  t.match(await leaving(root, '--purge'), { code: 0, out: /removed the hub's state/ })
  t.strictSame(fs.readdirSync(elsewhere), [])
  fs.rmdirSync(elsewhere)
  t.strictSame(treeOf(root), before)
  const live = await run(leave, ['--purge'])
  t.match(live, { code: 2, err: '--purge: add --restart' })
})

void t.test('join is idempotent, and the same after leave', async (t) => {
  const root = nodeRoot(rootFolder(t))
  await joining(root)
  const once = treeOf(root)
  const again = await joining(root)
  t.match(again, { code: 0, out: /^nothing to change\n/ })
  t.strictSame(treeOf(root), once)
  await leaving(root)
  for (const flags of [[], ['--dry-run']])
    t.match(await leaving(root, ...flags), { code: 0, out: 'nothing to roll back\n' })
  t.match(await leaving(root, '--cni-conf-dir=/etc/cni/net.d'), {
    code: 0,
    err: /^note: --cni-conf-dir has no effect any more: leave rolls back/,
  })
  await joining(root)
  t.strictSame(treeOf(root), once)
})

void t.test('a standard pool gets no loopback network, and keeps the plain port', async (t) => {
  const root = nodeRoot(rootFolder(t))
  t.equal((await joining(root, '--host-network-pool=false')).code, 0)
  t.notOk(fs.existsSync(joinPath(root, '/etc/cni')))
  t.notMatch(read(root, '/srv/kubelet/flags.env'), 'hostnetwork')
  t.notMatch(read(root, '/etc/kubernetes/manifests/nodehub.yaml'), 'plain-proxy')
})

void t.test('removed kubelet flags are reported, and leave restores them', async (t) => {
  const root = nodeRoot(rootFolder(t))
  const { err } = await joining(root)
  t.match(err, /note: --network-plugin left the kubelet in 1\.24 and is taken out/)
  await leaving(root)
  t.match(read(root, '/srv/kubelet/flags.env'), '--network-plugin=cni')
})

void t.test('--dry-run prints a diff, and changes nothing', async (t) => {
  const root = nodeRoot(rootFolder(t))
  const before = treeOf(root)
  const { code, out } = await joining(root, '--dry-run')
  t.equal(code, 0)
  t.match(out, /--- \/dev\/null\n\+\+\+ \/etc\/cni\/net\.d\/0-loopback\.conf\n@@ .* @@\n\+\{\n/)
  t.match(
    out,
    '\n-KUBELET_KUBEADM_ARGS="--network-plugin=cni --v=2"\n+KUBELET_KUBEADM_ARGS="--v=2 ',
  )
  t.strictSame(treeOf(root), before)
  await joining(root)
  const joined = treeOf(root)
  t.match(await leaving(root, '--dry-run'), {
    code: 0,
    out: /--- \/etc\/cni\/net\.d\/0-loopback\.conf\n\+\+\+ \/dev\/null\n@@ .* @@\n-\{\n/,
  })
  t.strictSame(treeOf(root), joined)
})

const yurthubPod = (...args: string[]): string =>
  JSON.stringify({
    kind: 'Pod',
    spec: { containers: [{ name: 'yurt-hub', command: ['yurthub', '--v=2', ...args] }] },
  })

void t.test(
  'join takes no hub of the node for an API server, and says where to find them',
  async (t) => {
    const manifest = '/etc/kubernetes/manifests/yurthub.yaml'
    const addresses = [
      'http://127.0.0.1:10261',
      'https://127.0.0.1:10268',
      'https://localhost:10268',
      'https://[::1]:10268',
      'http://169.254.2.1:10261',
    ]
    for (const [i, server] of addresses.entries()) {
      const root = nodeRoot(t.testdir({ [`${i}`]: {} }), {
        server,
        files: { [manifest]: yurthubPod() },
      })
      const before = treeOf(root)
      const { code, err } = await joining(root)
      t.equal(code, 1, server)
      t.match(err, `the kubeconfig /etc/kubernetes/kubelet.conf leads to ${server}`)
      t.match(err, `with --server-addr, as yurthub has them (${manifest})\nNothing was changed.`)
      t.strictSame(treeOf(root), before)
    }
    const alone = nodeRoot(rootFolder(t), { server: 'http://127.0.0.1:10261' })
    t.match(await joining(alone), {
      code: 1,
      err: 'give the API servers of the cluster with --server-addr',
    })
    t.match(await joining(alone, '--server-addr=https://127.0.0.1:10268'), {
      code: 1,
      err: '--server-addr leads to https://127.0.0.1:10268',
    })
    for (const [name, ...flags] of [[hostname()], ['Edge-9', '--node-name=edge-9']] as [
      string,
      ...string[],
    ][]) {
      const server = `https://${name}:10268`
      const err = `--server-addr leads to ${server.toLowerCase()}`
      t.match(await joining(alone, `--server-addr=${server}`, ...flags), { code: 1, err })
    }
    const ported = nodeRoot(rootFolder(t), { server: 'https://127.0.0.1:961' })
    t.match(await joining(ported, '--proxy-port=961'), { code: 1, err: 'https://127.0.0.1:961' })
    t.equal((await joining(ported)).code, 0)
  },
)

void t.test('join on a node with a yurthub advises how to end it', async (t) => {
  const servers = '--server-addr=https://10.0.0.1:6443'
  const ofPod = nodeRoot(t.testdir({ pod: {} }), {
    files: { '/etc/kubernetes/manifests/yurt-hub.yaml': yurthubPod(servers) },
  })
  t.match(await joining(ofPod, servers), {
    code: 0,
    err: /yurt-hub\.yaml starts a yurthub, .* move .*yurt-hub\.yaml out of/,
  })
  const ofUnit = nodeRoot(t.testdir({ unit: {} }), {
    server: 'http://127.0.0.1:10261',
    files: {
      '/etc/systemd/system/yurthub.service': '[Service]\nExecStart=/usr/bin/yurthub\n',
    },
  })
  t.match(await joining(ofUnit), {
    code: 1,
    err: 'as yurthub has them (systemctl cat yurthub)',
  })
  t.match(await joining(ofUnit, servers), { code: 0, err: 'systemctl disable --now yurthub' })
})

void t.test('a join or leave killed at any step can be resumed or undone', async (t) => {
  const folder = rootFolder(t)
  const base = nodeRoot(joinPath(folder, 'base'))
  const before = treeOf(base, state)
  // Joined before, its authority is there already, which is not made for nothing each time.
  await joining(base)
  const joined = treeOf(base, `${state}/pki`)
  const left = copyOf(folder, base)
  await leaving(left)

  const ofHub = Object.entries(joined).filter(
    ([path]) => !`/${path}`.startsWith(state) && path !== 'srv/kubelet/flags.env',
  )
  /** A kubelet that is restarted now starts: all that its flags lead it to is there. */
  const starts = (root: string): boolean => {
    if (!read(root, '/srv/kubelet/flags.env').includes('kubelet-nodehub.conf')) return true
    const now = treeOf(root)
    return (
      ofHub.every(([path, content]) => now[path] === content) &&
      `${state}/pki/ca.crt`.slice(1) in now
    )
  }

  let points = 0
  for (const [killed, from] of [
    ['join', left],
    ['leave', base],
  ] as const) {
    for (let at = 1; ; at++) {
      const root = copyOf(folder, from)
      const act = killed === 'join' ? joining : leaving
      if (await killedAt(at, () => act(root))) break
      points += 1
      const where = `${killed}, killed at its step ${at}`
      t.ok(starts(root), `${where}: the kubelet starts`)
      // One step is resumed and the next undone: neighbours leave much the same behind.
      if (at % 2 === 0) {
        t.equal((await joining(root)).code, 0, where)
        t.strictSame(treeOf(root, `${state}/pki`), joined, `${where}: joined`)
        continue
      }
      t.equal((await leaving(root)).code, 0, where)
      t.strictSame(treeOf(root, state), before, `${where}: left`)
      t.notOk(fs.existsSync(joinPath(root, state, 'joined')), where)
    }
  }
  t.ok(points > 40, `${points} steps`)
})

let copies = 0

function copyOf(folder: string, root: string): string {
  const copy = joinPath(folder, `copy-${++copies}`)
  fs.cpSync(root, copy, { recursive: true, verbatimSymlinks: true })
  return copy
}

void t.test('files that others changed are kept', async (t) => {
  const root = nodeRoot(rootFolder(t))
  await joining(root)
  const manifest = joinPath(root, '/etc/kubernetes/manifests/nodehub.yaml')
  fs.appendFileSync(manifest, '# by hand\n')
  const flags = joinPath(root, '/srv/kubelet/flags.env')
  fs.writeFileSync(flags, read(root, '/srv/kubelet/flags.env').replace('--v=2', '--v=4'))

  t.match(await joining(root, '--image=hub:2'), { code: 0, err: 'stays as it is (--overwrite)' })
  t.match(fs.readFileSync(manifest, 'utf8'), /nodehub:[^]*# by hand/)
  t.match(await leaving(root), { code: 0, err: 'a copy is in /var/lib/nodehub/left/nodehub.yaml' })
  t.notOk(fs.existsSync(manifest))
  t.match(read(root, '/var/lib/nodehub/left/nodehub.yaml'), '# by hand')
  t.equal(
    read(root, '/srv/kubelet/flags.env'),
    'KUBELET_KUBEADM_ARGS="--v=4 --network-plugin=cni"\n',
  )
})

void t.test('--overwrite replaces such files', async (t) => {
  const root = nodeRoot(rootFolder(t))
  const before = treeOf(root, state)
  await joining(root)
  fs.appendFileSync(joinPath(root, '/etc/kubernetes/manifests/nodehub.yaml'), '# by hand\n')
  await joining(root, '--image=hub:2', '--overwrite')
  t.match(read(root, '/etc/kubernetes/manifests/nodehub.yaml'), 'hub:2')
  await leaving(root)
  t.strictSame(treeOf(root, state), before)
})

void t.test('a damaged original is not restored', async (t) => {
  const root = nodeRoot(rootFolder(t))
  await joining(root)
  const originals = joinPath(root, state, 'joined', 'originals')
  for (const name of fs.readdirSync(originals)) fs.writeFileSync(joinPath(originals, name), 'x')
  const joined = treeOf(root)
  t.match(await leaving(root), { code: 1, err: 'restore it by hand' })
  t.strictSame(treeOf(root), joined)
})

void t.test('the CNI config goes to the runtime’s own folder', async (t) => {
  const root = nodeRoot(rootFolder(t), {
    files: {
      '/etc/containerd/config.toml':
        "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.cni]\n  conf_dir = '/opt/net'\n[plugins.other]\n  conf_dir = '/wrong'\n",
      '/opt/net/10-flannel.conflist': '{}',
    },
  })
  const { err } = await joining(root)
  t.ok(fs.existsSync(joinPath(root, '/opt/net/0-loopback.conf')))
  t.match(err, 'the network goes to /opt/net (/etc/containerd/config.toml)')
  t.match(err, '/opt/net also has 10-flannel.conflist')
})

void t.test('the other kind of pool is refused once the node has joined', async (t) => {
  const root = nodeRoot(rootFolder(t))
  await joining(root)
  const joined = treeOf(root)
  const { code, err } = await joining(root, '--host-network-pool=false')
  t.equal(code, 1)
  t.match(
    err,
    /takes nodehub leave, deleting the Node object, and joining again\nNothing was changed/,
  )
  t.strictSame(treeOf(root), joined)
})

void t.test('unreadable input changes nothing', async (t) => {
  const files = { '/srv/kubelet/flags.env': 'KUBELET_KUBEADM_ARGS="--a=$B"\n' }
  const root = nodeRoot(rootFolder(t), { files })
  const before = treeOf(root)
  t.match(await joining(root), { code: 1, err: 'kubeadm-flags.env: KUBELET_KUBEADM_ARGS has' })
  t.strictSame(treeOf(root), before)
  t.match(await run(join, ['--nodepol-name=x', 'y', '--restart', '--root=/x']), {
    code: 2,
    err: /did you mean --nodepool-name\?\n.*"y" is not a flag\n.*--nodepool-name is required.*\n.*--root: \/x is not there\n.*--restart is for this node/,
  })
})

/** An API server that answers what it is told to, and keeps what it was asked. */
async function apiServer(
  t: { teardown(act: () => void): unknown },
  answers: Readonly<Record<string, object>>,
): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      asked.push(`${request.method} ${request.url} ${body}`.trim())
      const answer = answers[`${request.method} ${request.url}`] ?? notFound({})
      const code = 'code' in answer ? Number(answer.code) : 200
      response.writeHead(code, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answer))
    })
  })
  return { url: `http://127.0.0.1:${await portOf(t, server)}`, asked }
}

const notFound = (details: object): object => ({
  kind: 'Status',
  code: 404,
  message: 'not found',
  details,
})

const pool = '/apis/apps.openyurt.io/v1beta2/nodepools/hn'
const old = '/apis/apps.openyurt.io/v1beta1/nodepools/hn'
const node = '/api/v1/nodes/edge-1'

void t.test('the API server gives the kind of the pool', async (t) => {
  for (const path of [pool, old]) {
    const api = await apiServer(t, { [`GET ${path}`]: { spec: { hostNetwork: true } } })
    const root = nodeRoot(rootFolder(t), { server: api.url })
    t.equal((await run(join, ['--nodepool-name=hn', `--root=${root}`])).code, 0)
    t.ok(fs.existsSync(joinPath(root, '/etc/cni/net.d/0-loopback.conf')))
  }
  const root = nodeRoot(rootFolder(t), { server: (await apiServer(t, {})).url })
  t.match(await run(join, ['--nodepool-name=hn', `--root=${root}`]), {
    code: 1,
    err: /say whether hn is a host-network pool: --host-network-node=true/,
  })
})

void t.test('an existing Node is labelled with its pool', async (t) => {
  const api = await apiServer(t, {
    [`GET ${node}`]: { metadata: { labels: {} } },
    [`PATCH ${node}`]: {},
  })
  const root = nodeRoot(rootFolder(t), { server: api.url })
  t.match((await joining(root)).out, 'labelled node edge-1')
  t.strictSame(
    api.asked.at(-1),
    `PATCH ${node} {"metadata":{"labels":{"apps.openyurt.io/nodepool":"hn"}}}`,
  )
})

void t.test('a wrong pool is reported before any change', async (t) => {
  const without = await apiServer(t, {
    [`GET ${node}`]: { metadata: {} },
    [`GET ${pool}`]: notFound({ name: 'hn' }),
  })
  const missing = nodeRoot(t.testdir({ missing: {} }), { server: without.url })
  t.match(await joining(missing, '--dry-run'), {
    code: 0,
    err: /^note: there is no NodePool hn at http.*: .*is --nodepool-name right\?$/m,
  })
  const standard = await apiServer(t, {
    [`GET ${node}`]: { metadata: {} },
    [`GET ${pool}`]: { spec: {} },
  })
  const root = nodeRoot(t.testdir({ standard: {} }), { server: standard.url })
  const before = treeOf(root)
  t.match(await joining(root), {
    code: 1,
    err: /--host-network-node=true, but NodePool hn at http.* is no host-network pool: .*\nNothing was changed\.$/m,
  })
  t.strictSame(treeOf(root), before)
  const right = await joining(root, '--host-network-pool=false', '--dry-run')
  t.equal(right.code, 0)
  t.notMatch(right.err, 'NodePool')
})

void t.test('a Node of another pool, or of the other kind, is not joined', async (t) => {
  for (const labels of [
    { 'apps.openyurt.io/nodepool': 'other' },
    { 'nodepool.openyurt.io/hostnetwork': 'true' },
  ]) {
    const api = await apiServer(t, { [`GET ${node}`]: { metadata: { labels } } })
    const root = nodeRoot(rootFolder(t), { server: api.url })
    const before = treeOf(root)
    t.match(await joining(root, '--host-network-pool=false'), { code: 1, err: 'delet' })
    t.strictSame(treeOf(root), before)
  }
})

void t.test(
  'leave refuses while pods run that only the hub puts on the host network',
  async (t) => {
    const podsPath = 'GET /api/v1/pods?fieldSelector=spec.nodeName%3Dedge-1'
    const running = { phase: 'Running', hostIP: '10.0.0.1' }
    const metadata = (name: string): object => ({ namespace: 'default', name })
    const items = [
      { metadata: metadata('own'), spec: {}, status: { ...running, podIP: '10.244.0.2' } },
      {
        metadata: metadata('host'),
        spec: { hostNetwork: true },
        status: { ...running, podIP: '10.0.0.1' },
      },
    ]
    const propagated = {
      metadata: metadata('put'),
      spec: {},
      status: { ...running, podIP: '10.0.0.1' },
    }
    const answers: Record<string, object> = { [podsPath]: { items: [...items, propagated] } }
    const api = await apiServer(t, answers)
    const root = nodeRoot(rootFolder(t), { server: api.url })
    await joining(root)
    propagate(root)
    const joined = treeOf(root)
    t.match(await leaving(root), { code: 1, err: /or --force: default\/put\nNothing was changed/ })
    t.strictSame(treeOf(root), joined)
    delete answers[podsPath]
    t.match(await leaving(root), { code: 1, err: 'is not known' })
    answers[podsPath] = { items }
    t.equal((await leaving(root)).code, 0)

    await joining(root)
    propagate(root)
    delete answers[podsPath]
    t.equal((await leaving(root, '--force')).code, 0)
  },
)

void t.test('a damaged record is reported with advice, and changes nothing', async (t) => {
  const root = nodeRoot(rootFolder(t))
  await joining(root)
  const file = joinPath(root, state, 'joined', 'record.json')
  const whole = fs.readFileSync(file, 'utf8')
  for (const [text, wrong] of [
    ['', 'it is no JSON object'],
    [whole.slice(0, 200), 'it is no JSON object'],
    ['null', 'it is no JSON object'],
    [whole.replace('"version": 1', '"version": 2'), 'it is of another release of nodehub'],
  ] as const) {
    fs.writeFileSync(file, text)
    const before = treeOf(root)
    for (const [act, more] of [
      [leaving, []],
      [leaving, ['--force']],
      [leaving, ['--dry-run']],
      [joining, []],
      [joining, ['--overwrite']],
    ] as const) {
      const { code, err } = await act(root, ...more)
      t.equal(code, 1, wrong)
      t.match(err, `${state}/joined/record.json cannot be used: ${wrong}`)
      t.match(err, `what stood there before is in ${state}/joined/originals) and remove`)
      t.match(err, /\nNothing was changed\.\n$/)
    }
    t.strictSame(treeOf(root), before, wrong)
  }
  fs.writeFileSync(file, whole)
  t.equal((await leaving(root)).code, 0)
})

void t.test('a missing original is reported with its file', async (t) => {
  const root = nodeRoot(rootFolder(t))
  await joining(root)
  fs.rmSync(joinPath(root, state, 'joined', 'originals'), { recursive: true })
  const joined = treeOf(root)
  for (const act of [leaving, joining]) {
    const { code, err } = await act(root)
    t.equal(code, 1)
    t.match(
      err,
      /originals\/\w{64} is gone, which is what stood in \/var\/lib\/kubelet\/kubeadm-flags\.env before.*\nNothing was changed\.\n$/,
    )
  }
  t.strictSame(treeOf(root), joined)
})

void t.test('without the record, leave still detects a joined node and refuses', async (t) => {
  const root = nodeRoot(rootFolder(t))
  await joining(root)
  fs.rmSync(joinPath(root, state, 'joined', 'record.json'))
  const joined = treeOf(root)
  for (const flags of [[], ['--dry-run']])
    t.match(await leaving(root, ...flags), {
      code: 1,
      err: /no join is recorded in .*kubeadm-flags\.env leads the kubelet to a hub.*\nNothing was changed/,
    })
  t.strictSame(treeOf(root), joined)
})

void t.test('a join that fails halfway can be resumed', async (t) => {
  const folder = rootFolder(t)
  const files = { '/var/lib/nodehub/pki': 'no folder' }
  const root = nodeRoot(joinPath(folder, 'base'), { files })
  const before = treeOf(root, state)
  t.match(await joining(root), {
    code: 1,
    err: /\nJoin again, or leave: either goes on from there/,
  })
  fs.rmSync(joinPath(root, state, 'pki'))
  const other = copyOf(folder, root)
  t.equal((await leaving(other)).code, 0)
  t.strictSame(treeOf(other, state), before)
  t.equal((await joining(root)).code, 0)
})

void t.test(
  'without an API server leave proceeds unless the hub has propagated pods',
  async (t) => {
    const page = createServer((_, response) => response.end('<html>sign in</html>'))
    const signIn = `http://127.0.0.1:${await portOf(t, page)}`
    for (const [server, why] of [
      ['https://127.0.0.1:1', 'did not answer: connect ECONNREFUSED'],
      [signIn, 'answered with something else'],
    ] as const) {
      const root = nodeRoot(rootFolder(t), { server })
      const before = treeOf(root, state)
      await joining(root)
      t.match(await leaving(root), { code: 0, err: `${why}` })
      t.strictSame(treeOf(root, state), before)

      await joining(root)
      propagate(root)
      const joined = treeOf(root)
      const refused = await leaving(root)
      t.match(refused, {
        code: 1,
        err: / leave when it answers, or with --force\nNothing was changed/,
      })
      t.match(refused.err, why)
      t.strictSame(treeOf(root), joined)
      t.equal((await leaving(root, '--force')).code, 0)
      t.strictSame(treeOf(root, state), before)
    }
    const root = nodeRoot(rootFolder(t))
    await joining(root)
    propagate(root)
    fs.rmSync(joinPath(root, '/etc/kubernetes/kubelet.conf'))
    t.match(await leaving(root), {
      code: 1,
      err: /no API server can be reached: \/etc\/kubernetes\/kubelet\.conf is not there;.*--force/,
    })
  },
)

/** What the units start; a join looks for it. */
const installed = { '/opt/nodehub/dist/src/main.js': '', '/usr/local/bin/node': '' }
const bySystemd = '--systemd'
const unit = (name: string): string => `/etc/systemd/system/${name}`

void t.test(
  'join --systemd writes the units that manifests prints, and leave restores every byte',
  async (t) => {
    const root = nodeRoot(rootFolder(t), { files: installed })
    const before = treeOf(root, state, '/var/lib/nodehub')
    const joined = await joining(root, bySystemd, '--host-network-pool=false', '--serve-port=967')
    t.match(joined, {
      code: 0,
      out: 'systemctl daemon-reload && systemctl restart nodehub.socket nodehub-ipv6.socket nodehub.service && systemctl restart kubelet\n',
    })
    t.notOk(fs.existsSync(joinPath(root, '/etc/kubernetes/manifests/nodehub.yaml')))
    t.match(read(root, '/srv/kubelet/flags.env'), '--kubeconfig=/etc/kubernetes/kubelet-nodehub')
    for (const name of ['nodehub.socket', 'nodehub-ipv6.socket', 'nodehub.service']) {
      const flags = ['--part=systemd', `--unit=${name}`, '--server-addr=https://127.0.0.1:1']
      const printed = await run(manifests, [...flags, '--serve-port=967', '--node-name=edge-1'])
      const text = read(root, unit(name)).replace(' --nodepool-name=hn', '')
      t.equal(text, printed.out, "of the node in the kubelet's certificate")
    }
    const again = await joining(root, bySystemd, '--host-network-pool=false', '--serve-port=967')
    t.match(again.out, /^nothing to change\n/)
    t.match(await leaving(root), {
      code: 0,
      out: 'systemctl stop nodehub.socket nodehub-ipv6.socket nodehub.service && systemctl daemon-reload\n',
    })
    t.strictSame(treeOf(root, state), before)
  },
)

void t.test('with systemd and the hub’s files there, systemd is the default', async (t) => {
  const files = { ...installed, '/usr/lib/systemd/systemd': '' }
  const pod = '/etc/kubernetes/manifests/nodehub.yaml'
  const runsBy = (root: string): string => {
    const [isPod, isUnit] = [pod, unit('nodehub.socket')].map((path) =>
      fs.existsSync(joinPath(root, path)),
    )
    return isPod === isUnit ? 'neither or both' : isPod ? 'static pod' : 'systemd'
  }
  for (const [flags, by] of [
    [[], 'systemd'],
    [['--image=hub:1'], 'static pod'],
    [['--manifest-dir=/etc/kubernetes/manifests'], 'static pod'],
    [['--keep-ports'], 'static pod'],
    [['--systemd=false'], 'static pod'],
  ] as const) {
    const root = nodeRoot(rootFolder(t), { files })
    const { code, err } = await joining(root, ...flags)
    t.equal(code, 0, flags.join(' '))
    t.equal(runsBy(root), by, flags.join(' '))
    t.equal(
      /any user's program can take its ports 10261, 10267 and 10268.*--keep-ports.*--systemd/.test(
        err,
      ),
      by === 'static pod' && !flags.some((flag) => flag === '--keep-ports'),
      `${flags.join(' ')}: what a static pod leaves open is said`,
    )
    await leaving(root)
  }
  for (const missing of Object.keys(files)) {
    const some = Object.entries(files).filter(([path]) => path !== missing)
    const root = nodeRoot(rootFolder(t), { files: Object.fromEntries(some) })
    t.equal((await joining(root)).code, 0)
    t.equal(runsBy(root), 'static pod', `without ${missing}`)
    fs.mkdirSync(dirname(joinPath(root, missing)), { recursive: true })
    fs.writeFileSync(joinPath(root, missing), '')
    t.match(await joining(root), { code: 0, out: /^nothing to change\n/ }, 'as it has joined')
  }
})

void t.test('with --keep-ports the kernel keeps the ports of a static pod for root', async (t) => {
  const root = nodeRoot(rootFolder(t))
  const before = treeOf(root, state, '/var/lib/nodehub')
  await joining(root)
  const { code, out, err } = await joining(root, '--keep-ports')
  t.equal(code, 0, 'a node that has joined without it can have it')
  t.notMatch(err, 'can take its ports')
  t.match(out, 'from the next boot on, or now: sysctl -p /etc/sysctl.d/90-nodehub.conf\n')
  t.match(
    read(root, '/etc/sysctl.d/90-nodehub.conf'),
    '\nnet.ipv4.ip_unprivileged_port_start = 10269\n',
  )
  t.match(await joining(root), { code: 0, out: /^nothing to change\n/ }, 'and goes on having it')
  t.match(await leaving(root), {
    code: 0,
    out: 'until the next boot, or: sysctl -w net.ipv4.ip_unprivileged_port_start=1024\n',
  })
  t.strictSame(treeOf(root, state), before)
  t.match(await joining(root, bySystemd, '--keep-ports'), {
    code: 2,
    err: '--keep-ports is for a static pod, and --systemd writes none',
  })
  const low = ['--proxy-port=961', '--proxy-secure-port=968', '--serve-port=967']
  t.notMatch(
    (await joining(root, ...low)).err,
    'can take its ports',
    'the kernel keeps these anyway',
  )
})

void t.test('the host of a static pod is given a command, where it has none', async (t) => {
  const command = '/usr/local/bin/nodehub'
  /** The command while the node has joined, if it has one. */
  const commandOf = async (
    files: Record<string, string>,
    path = command,
    ...flags: string[]
  ): Promise<string | undefined> => {
    const root = nodeRoot(rootFolder(t), { files })
    const before = treeOf(root, state)
    t.equal((await joining(root, '--image=hub:1', ...flags)).code, 0)
    const found = fs.existsSync(joinPath(root, path)) ? read(root, path) : undefined
    t.equal((await leaving(root)).code, 0)
    t.strictSame(treeOf(root, state), before)
    return found
  }
  const root = nodeRoot(rootFolder(t))
  await joining(root, '--image=hub:1')
  t.equal(fs.statSync(joinPath(root, command)).mode & 0o777, 0o755)
  fs.writeFileSync(joinPath(root, command), 'of an earlier release')
  t.equal((await joining(root, '--image=hub:2', '--overwrite')).code, 0)
  t.match(read(root, command), "hub='/etc/kubernetes/manifests/nodehub.yaml'", 'written anew')

  t.equal(await commandOf({}, command, '--host-command=false'), undefined)
  t.equal(await commandOf({ [command]: 'own' }), 'own', 'what is there stays')
  t.equal(await commandOf({ '/usr/bin/nodehub': 'of a package' }), undefined)
  t.match(await commandOf({ '/usr/local': 'no folder' }, '/opt/bin/nodehub'), '#!/bin/sh')
})

void t.test('with systemd and ip, a unit creates the dummy interface', async (t) => {
  const files = { '/usr/lib/systemd/systemd': '', '/sbin/ip': '' }
  const unit = '/etc/systemd/system/nodehub-dummy.service'
  const start = '/etc/systemd/system/multi-user.target.d/nodehub-dummy.conf'
  for (const missing of Object.keys(files)) {
    const some = Object.entries(files).filter(([path]) => path !== missing)
    const root = nodeRoot(rootFolder(t), { files: Object.fromEntries(some) })
    t.equal((await joining(root)).code, 0)
    t.notOk(fs.existsSync(joinPath(root, unit)), `not without ${missing}`)
  }
  for (const by of ['static pod', 'systemd'] as const) {
    const root = nodeRoot(rootFolder(t), {
      files: { ...files, ...(by === 'systemd' && installed) },
    })
    const before = treeOf(root, state, '/var/lib/nodehub')
    const { code, out } = await joining(root)
    t.equal(code, 0, by)
    t.equal(fs.existsSync(joinPath(root, '/etc/systemd/system/nodehub.service')), by === 'systemd')
    t.match(out, 'or now: systemctl daemon-reload && systemctl restart nodehub-dummy.service\n')
    t.match(read(root, unit), 'ip address add 169.254.2.1/32 dev hub-dummy0 scope link')
    t.equal(read(root, start), '[Unit]\nWants=nodehub-dummy.service\n')
    t.match(await joining(root), { code: 0, out: /^nothing to change\n/ })
    t.match(await leaving(root), {
      code: 0,
      out: /until the next boot, or: systemctl stop nodehub-dummy.service\n/,
    })
    t.strictSame(treeOf(root, state), before, 'leave takes it back')
    t.equal((await joining(root, '--dummy-interface=false')).code, 0)
    t.notOk(fs.existsSync(joinPath(root, unit)), 'not where it is not wanted')
    t.match(await joining(root), { code: 0, out: /^nothing to change\n/ }, 'and goes on so')
    await leaving(root)
  }
})

void t.test('--dummy-if-ip is passed on to hub and unit', async (t) => {
  const files = { '/usr/lib/systemd/systemd': '', '/sbin/ip': '' }
  const unit = '/etc/systemd/system/nodehub-dummy.service'
  for (const by of ['static pod', 'systemd'] as const) {
    const root = nodeRoot(rootFolder(t), {
      files: { ...files, ...(by === 'systemd' && installed) },
    })
    t.match(await joining(root, '--dummy-if-ip=10.0.0.1'), {
      code: 2,
      err: /--dummy-if-ip: "10\.0\.0\.1" is not in 169\.254\.0\.0\/16/,
    })
    t.equal((await joining(root, '--dummy-if-ip=fd00::2:1')).code, 0, by)
    t.match(read(root, unit), 'ip address add fd00::2:1/128 dev hub-dummy0 nodad &&')
    const started =
      by === 'systemd'
        ? '/etc/systemd/system/nodehub.service'
        : '/etc/kubernetes/manifests/nodehub.yaml'
    t.match(read(root, started), '--dummy-if-ip=fd00::2:1')
    t.match(await joining(root), { code: 0, out: /^nothing to change\n/ }, 'and goes on so')
    t.equal((await joining(root, '--dummy-if-ip=169.254.2.1')).code, 0)
    t.match(read(root, unit), 'ip address add 169.254.2.1/32')
    t.match(read(root, started), '--dummy-if-ip=169.254.2.1')
  }
})

void t.test('a program that others may write is refused', async (t) => {
  const main = '/opt/nodehub/dist/src/main.js'
  const node = '/usr/local/bin/node'
  const dependency = '/opt/nodehub/node_modules/undici/index.js'
  const files = { ...installed, [dependency]: '', '/home/user/node': '' }
  const open = (path: string, mode: number) => (root: string) =>
    fs.chmodSync(joinPath(root, path), mode)
  const linked = (target: string) => (root: string) => {
    fs.rmSync(joinPath(root, node))
    fs.symlinkSync(target, joinPath(root, node))
  }
  for (const [change, said] of [
    [open(main, 0o666), `${main} may be written by others than its owner (mode 666)`],
    [open(dependency, 0o664), `${dependency} may be written by others than its owner (mode 664)`],
    [open('/opt', 0o777), '/opt may be written by others than its owner (mode 777)'],
    [open(node, 0o757), `${node} may be written by others than its owner (mode 757)`],
    [
      (root: string) => {
        linked('/home/user/node')(root)
        open('/home/user', 0o770)(root)
      },
      '/home/user may be written by others than its owner (mode 770)',
    ],
    ...(process.getuid?.() === 0
      ? ([
          [
            (root: string) => fs.chownSync(joinPath(root, dependency), 1_000, 0),
            `${dependency} belongs to the user 1000, who could change it`,
          ],
          [
            (root: string) => fs.lchownSync(joinPath(root, node), 1_000, 0),
            `${node} belongs to the user 1000, who could change it`,
          ],
        ] as const)
      : []),
  ] as const) {
    const root = nodeRoot(rootFolder(t), { files })
    change(root)
    const before = treeOf(root)
    const { code, err } = await joining(root, bySystemd)
    t.equal(code, 1, said)
    t.match(err, said)
    t.match(err, /as root: .*chmod/, 'and what to do')
    t.strictSame(treeOf(root), before)
    t.equal((await joining(root, '--systemd=false')).code, 0, 'a static pod starts none of it')
  }
  const root = nodeRoot(rootFolder(t), { files })
  linked('../../../home/user/node')(root)
  fs.renameSync(joinPath(root, '/opt/nodehub'), joinPath(root, '/opt/nodehub-1.2'))
  fs.symlinkSync('/opt/nodehub-1.2', joinPath(root, '/opt/nodehub'))
  t.equal((await joining(root, bySystemd)).code, 0, 'links of root, to what is of root, are good')
})

void t.test('join refuses a second hub, and one that cannot start', async (t) => {
  const refused = async (root: string, flags: string[], err: string): Promise<void> => {
    const before = treeOf(root)
    t.match(await joining(root, ...flags), { code: 1, err })
    t.strictSame(treeOf(root), before)
  }
  await refused(nodeRoot(rootFolder(t)), [bySystemd], 'dist/src/main.js is not there')
  const withoutNode = { '/opt/nodehub/dist/src/main.js': '' }
  await refused(
    nodeRoot(rootFolder(t), { files: withoutNode }),
    [bySystemd],
    'bin/node is not there',
  )

  const manifest = '/etc/kubernetes/manifests/nodehub.yaml'
  const byHand = nodeRoot(rootFolder(t), { files: { ...installed, [manifest]: 'kind: Pod\n' } })
  await refused(byHand, [bySystemd], `${manifest} starts a hub of its own`)
  const units = { ...installed, [unit('nodehub.service')]: '[Service]\n' }
  const root = nodeRoot(rootFolder(t), { files: units })
  await refused(root, [], '/etc/systemd/system/nodehub.service starts a hub of its own')

  const root1 = nodeRoot(rootFolder(t), { files: installed })
  await joining(root1)
  await refused(root1, [bySystemd], 'joined with the hub as a static pod: nodehub leave first')
  await leaving(root1)
  t.equal((await joining(root1, bySystemd)).code, 0)
  const asSystemd = 'joined with the hub as a systemd service: nodehub leave first'
  await refused(root1, ['--systemd=false'], asSystemd)
  await refused(root1, ['--image=hub:2'], asSystemd)
  t.match(await joining(root1, bySystemd, '--image=hub:2'), {
    code: 2,
    err: '--image is for a static pod, and --systemd writes none',
  })
})

void t.test(
  'if a drop-in may turn the legacy filter on, leave without an API server is refused',
  async (t) => {
    const root = nodeRoot(rootFolder(t), { files: installed })
    await joining(root, bySystemd)
    const folder = joinPath(root, unit('nodehub.service.d'))
    fs.mkdirSync(folder)
    const dropIn = joinPath(folder, '10.conf')
    fs.writeFileSync(dropIn, '[Service]\nEnvironment=NODEHUB_HOST_NETWORK_PROPAGATION=on\n')
    t.match(await leaving(root), { code: 1, err: /--force\nNothing was changed/ })
    fs.writeFileSync(dropIn, '[Service]\nEnvironment=NODEHUB_V=2\n')
    t.equal((await leaving(root)).code, 0)
    t.ok(fs.existsSync(dropIn), "an operator's own")
  },
)

const systemd = '/lib/systemd/systemd'

void t.test(
  'at boot systemd starts the units of join --systemd',
  { skip: !fs.existsSync(systemd) && `no ${systemd}` },
  async (t) => {
    const root = nodeRoot(rootFolder(t), { files: installed })
    await joining(root, bySystemd)
    const service = joinPath(root, unit('nodehub.service'))
    // A program that systemd finds, as it finds Node on a node.
    const text = fs.readFileSync(service, 'utf8').replace('/usr/local/bin/node', '/bin/true')
    fs.writeFileSync(service, text)
    fs.chmodSync(root, 0o755)
    const planned = spawnSync(systemd, ['--test', '--system', '--unit=multi-user.target'], {
      cwd: '/',
      // It does this for all users but root.
      ...(process.getuid?.() === 0 && { uid: 65_534, gid: 65_534 }),
      env: { SYSTEMD_UNIT_PATH: `${joinPath(root, unit(''))}:` },
      maxBuffer: 64 * 1024 * 1024,
    })
    const jobs = planned.stdout.toString()
    for (const name of ['nodehub.socket', 'nodehub-ipv6.socket', 'nodehub.service'])
      t.ok(jobs.includes(`Action: ${name} -> start`), name)
  },
)

/** Has the hub of a joined node put pods on the host network. */
function propagate(root: string): void {
  const manifest = joinPath(root, '/etc/kubernetes/manifests/nodehub.yaml')
  const text = fs.readFileSync(manifest, 'utf8')
  fs.writeFileSync(
    manifest,
    text.replace('- --plain', '- --host-network-propagation=on\n        - --plain'),
  )
}
