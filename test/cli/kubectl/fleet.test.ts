import { execFile } from 'node:child_process'
import { chmodSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runCli } from '../../../src/cli/cli.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { hubReportAnnotation } from '../../../src/api/kube/hub-report.ts'
import { nodes, pods } from '../../kit/cloud.ts'
import { startTestCluster, type TestCluster } from '../../kit/cluster-api.ts'
import { freePort } from '../../kit/free-port.ts'
import { nodehubProgram } from '../../kit/hub-programs.ts'
import { said, type Said } from '../../kit/terminal.ts'

const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString()
const hour = 3600

interface Hub {
  readonly offlineReady?: 'True' | 'False'
  readonly report?: unknown
  /** When it reported last. */
  readonly reported?: string
  readonly ready?: 'True' | 'Unknown'
}

/** A node whose kubelet changed its word two hours ago. */
function addNode(
  { sandbox }: TestCluster,
  name: string,
  hub: Hub = {},
  labels: JsonObject = {},
  annotations: JsonObject = {},
) {
  const { offlineReady, report, reported = ago(60), ready = 'True' } = hub
  const text = typeof report === 'string' ? report : JSON.stringify(report)
  sandbox.create(nodes, {
    metadata: {
      name,
      labels,
      annotations: { ...annotations, ...(report !== undefined && { [hubReportAnnotation]: text }) },
    },
    status: {
      conditions: [
        { type: 'Ready', status: ready, lastTransitionTime: ago(2 * hour + 60) },
        ...(offlineReady === undefined
          ? []
          : [
              {
                type: 'OfflineReady',
                status: offlineReady,
                message: '1 of 2 pods would not come back without a link: shop/web',
                lastHeartbeatTime: reported,
              },
            ]),
      ],
    },
  })
}

const reportOf = (failing: readonly string[] = []) => ({
  version: '0.3.0',
  onlineSince: ago(3 * hour),
  failing,
})

const run = ({ kubeconfig }: TestCluster, ...argv: readonly string[]): Promise<Said> =>
  said((terminal) => runCli(['kubectl', ...argv, `--kubeconfig=${kubeconfig}`], terminal))

async function smallFleet(t: Test): Promise<TestCluster> {
  const cluster = await startTestCluster(t)
  const fine = { offlineReady: 'True', report: reportOf() } as const
  addNode(cluster, 'a-fine', fine, { zone: 'north' })
  addNode(cluster, 'b-control-plane')
  addNode(cluster, 'c-unkept', { offlineReady: 'False', report: reportOf() })
  addNode(cluster, 'd-disk', { ...fine, report: reportOf(['store: the disk is full']) })
  addNode(cluster, 'e-gone', { ...fine, ready: 'Unknown', reported: ago(3 * hour) })
  addNode(cluster, 'f-lost', {
    offlineReady: 'False',
    report: reportOf(),
    ready: 'Unknown',
    reported: ago(3 * hour),
  })
  addNode(cluster, 'g-silent', { ...fine, reported: ago(hour) })
  addNode(cluster, 'h-no-kubelet', { ...fine, ready: 'Unknown' })
  return cluster
}

void t.test('fleet has a line for each node, the worst first, and a summary', async (t) => {
  const cluster = await smallFleet(t)
  const { code, out, err } = await run(cluster, 'fleet')
  t.strictSame([code, err], [1, ''])
  const unkept = 'boot: 1 of 2 pods would not come back without a link: shop/web'
  t.strictSame(
    out.split('\n').map((line) => line.split(/ {2,}/)),
    [
      ['NAME', 'ONLINE', 'AGE', 'VERSION', 'OFFLINE-READY', 'FAILING'],
      ['f-lost', 'No', '121m', '0.3.0', 'False', unkept],
      ['e-gone', 'No', '121m', '0.3.0', 'True', '-'],
      ['d-disk', 'Yes', '3h', '0.3.0', 'True', 'store: the disk is full'],
      ['g-silent', 'Yes', '3h', '0.3.0', 'True', 'report: none from the hub for 60m'],
      ['c-unkept', 'Yes', '3h', '0.3.0', 'False', unkept],
      ['a-fine', 'Yes', '3h', '0.3.0', 'True', '-'],
      ['h-no-kubelet', 'Yes', '3h', '0.3.0', 'True', '-'],
      ['b-control-plane', 'Yes', '121m', '<none>', '<none>', '-'],
      [''],
      [
        '8 nodes: 2 offline, 2 with failing checks, 2 would not come back without a link, 1 without a report',
      ],
      [''],
    ],
  )
})

void t.test(
  'what installers say counts, and a hub that was removed is missed no more',
  async (t) => {
    const cluster = await startTestCluster(t)
    const stale = { offlineReady: 'False', report: reportOf(), reported: ago(hour) } as const
    const install = (state: string, message?: string): JsonObject => ({
      'nodehub.io/install': JSON.stringify({ state, version: '0.3.0', image: 'nodehub', message }),
    })
    addNode(cluster, 'a', stale, {}, install('Removed'))
    addNode(cluster, 'b', {}, {}, install('Refused', 'it has a yurthub'))
    const { out } = await run(cluster, 'fleet', '--no-headers')
    t.match(
      out,
      /^b +Yes +121m +0\.3\.0 +<none> +install: Refused it has a yurthub\na +Yes +121m +<none> +<none> +-\n$/,
    )
  },
)

void t.test(
  'a selector chooses nodes, and without headers there are lines of nodes alone',
  async (t) => {
    const cluster = await smallFleet(t)
    const { code, out } = await run(cluster, 'fleet', '-l', 'zone=north', '--no-headers')
    t.equal(code, 0)
    t.match(out, /^a-fine {2}Yes .*\n$/)
    t.match(
      (await run(cluster, 'fleet', '-l', 'zone=north')).out,
      '\n1 node, all online and well\n',
    )
    t.strictSame(await run(cluster, 'fleet', '-l', 'zone=south', '--no-headers'), {
      code: 0,
      out: '',
      err: '',
    })
  },
)

void t.test('a fleet of thousands is read in pages', async (t) => {
  const cluster = await startTestCluster(t)
  for (let at = 0; at < 1_200; at++)
    addNode(cluster, `edge-${at}`, { offlineReady: 'True', report: reportOf() })
  const { code, out } = await run(cluster, 'fleet', '-o', 'json')
  t.equal(code, 0)
  t.equal((JSON.parse(out) as { nodes: unknown[] }).nodes.length, 1_200)
  const lists = cluster.sandbox.requests.filter(({ path }) => path === '/api/v1/nodes')
  t.equal(lists.length, 3)
  t.ok(lists.every(({ url }) => url.includes('limit=500')))
})

void t.test('status counts the nodes of each release, and of a node says all', async (t) => {
  const cluster = await smallFleet(t)
  const fleet = await run(cluster, 'status')
  t.equal(fleet.code, 1)
  t.match(
    fleet.out,
    /^VERSION +NODES +ONLINE +OFFLINE-READY +WRONG\n0\.3\.0 +7 +5 +5 +5\n<none> +1 +1 +0 +0\n\n/,
  )
  const { code, out } = await run(cluster, 'status', 'c-unkept')
  t.equal(code, 1)
  t.match(out, /^Name: +c-unkept\nOnline: +Yes, for 3h\nVersion: +0\.3\.0\nOffline-ready: +False\n/)
  t.match(out, /\nFailing: +boot: 1 of 2 pods .*\n$/)
  t.match(JSON.parse((await run(cluster, 'status', 'a-fine', '-o', 'json')).out), {
    name: 'a-fine',
    online: true,
    offlineReady: true,
    failing: [],
  })
  t.strictSame(await run(cluster, 'status', 'z'), {
    code: 2,
    out: '',
    err: 'kubectl nodehub status: there is no node "z"\n',
  })
})

void t.test(
  'what a node writes of itself never reaches the terminal as control characters',
  async (t) => {
    const cluster = await startTestCluster(t)
    const escapes = '\u001b[2J\u009b31m\u0007\u202e\r\n'
    addNode(cluster, 'a', {
      offlineReady: 'True',
      report: {
        version: escapes,
        onlineSince: escapes,
        failing: [escapes, 'x'.repeat(100_000), 7],
      },
    })
    addNode(cluster, 'b', { offlineReady: 'True', report: `{"version":"${'['.repeat(10_000)}` })
    addNode(cluster, 'c', { offlineReady: 'True', report: '[]' })
    for (const words of [['fleet'], ['fleet', '-o', 'yaml'], ['status'], ['status', 'a']]) {
      const { out, err } = await run(cluster, ...words)
      t.notMatch(out.replaceAll('\n', ''), /\p{C}/u, words.join(' '))
      t.equal(err, '')
      t.ok(out.length < 3_000, words.join(' '))
    }
  },
)

void t.test(
  'an API server that cannot be reached, or refuses, is named in a sentence',
  async (t) => {
    const port = await freePort()
    const kubeconfig = kubeconfigFor(t, `http://127.0.0.1:${port}`)
    const from = (...more: string[]): Promise<Said> =>
      said((terminal) =>
        runCli(['kubectl', 'fleet', `--kubeconfig=${kubeconfig}`, ...more], terminal),
      )
    t.strictSame(await from(), {
      code: 2,
      out: '',
      err: `kubectl nodehub fleet: the API server http://127.0.0.1:${port} cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}; check the address in the kubeconfig, and that this host reaches it\n`,
    })
    t.match(
      (await from('--context=tset')).err,
      'the kubeconfig has no context "tset", did you mean test?',
    )
    const cluster = await startTestCluster(t)
    cluster.sandbox.authorize(() => false)
    t.match(await run(cluster, 'fleet'), {
      code: 2,
      err: /^kubectl nodehub fleet: GET \/api\/v1\/nodes\?limit=500 was answered 403 Forbidden: .*\n$/,
    })
  },
)

function kubeconfigFor(t: Test, server: string): string {
  const config = {
    clusters: [{ name: 'test', cluster: { server } }],
    users: [{ name: 'test', user: {} }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  }
  return join(t.testdir({ config: JSON.stringify(config) }), 'config')
}

/** Runs a program as a shell would. */
function started(
  program: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Said> {
  const { promise, resolve } = Promise.withResolvers<Said>()
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const options = { env: { PATH, NODE_COMPILE_CACHE, ...env } }
  execFile(process.execPath, [program, ...argv], options, (error, out, err) =>
    resolve({ code: Number(error?.code ?? 0), out, err }),
  )
  return promise
}

void t.test('the program is the plugin under the name kubectl-nodehub', async (t) => {
  const cluster = await smallFleet(t)
  const plugin = join(t.testdir({}), 'kubectl-nodehub')
  symlinkSync(nodehubProgram, plugin)
  // kubectl's own way to a cluster.
  const { out } = await started(plugin, ['status', 'a-fine'], { KUBECONFIG: cluster.kubeconfig })
  t.match(out, /^Name: +a-fine\n/)
  t.match(await started(plugin, ['flet'], {}), {
    code: 2,
    err: /there is no command "flet", did you mean fleet\?\nSee kubectl nodehub --help\./,
  })
  t.match((await started(plugin, [], {})).out, 'Usage: kubectl nodehub fleet|status|why ')
})

const hubPod = (nodeName: string): JsonObject => ({
  metadata: {
    name: `nodehub-${nodeName}`,
    namespace: 'kube-system',
    labels: { 'app.kubernetes.io/name': 'nodehub', 'app.kubernetes.io/component': 'hub' },
  },
  spec: {
    nodeName,
    containers: [{ name: 'nodehub', image: 'nodehub', args: ['start', '--serve-port=20267'] }],
  },
})

const entry = {
  at: '2026-11-28T12:00:00.000Z',
  component: 'kubelet',
  caller: 'node',
  verb: 'get',
  path: '/api/v1/namespaces/shop/configmaps/web\u001b[2J',
  code: 503,
  source: 'hub',
  reason: 'not recorded',
  ms: 1,
  bytes: 200,
}

const collection = {
  resource: 'configmaps',
  namespace: 'shop',
  identity: 'system:node:edge-1',
  confirmedAt: '2026-11-28T11:00:00.000Z',
  objects: 3,
}

/** A folder of a `kubectl` that keeps its arguments and answers for the hub in its pod. */
function hubBehindKubectl(t: Test): { readonly bin: string; readonly seen: string } {
  const collections = { items: [collection, { ...collection, namespace: 'other' }] }
  const bin = t.testdir({
    requests: JSON.stringify({ items: [entry] }),
    cache: JSON.stringify({ collections }),
    kubectl: `#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/seen"
case "$*" in *"inspect cache"*) exec cat "$here/cache" ;; esac
exec cat "$here/requests"
`,
  })
  chmodSync(join(bin, 'kubectl'), 0o755)
  return { bin, seen: join(bin, 'seen') }
}

const why = (cluster: TestCluster, bin: string, ...argv: readonly string[]): Promise<Said> =>
  started(nodehubProgram, ['kubectl', 'why', ...argv, `--kubeconfig=${cluster.kubeconfig}`], {
    PATH: `${bin}:${process.env['PATH']}`,
  })

void t.test('why queries the hub in its pod, and has no control characters of it', async (t) => {
  const cluster = await startTestCluster(t)
  addNode(cluster, 'edge-1')
  cluster.sandbox.create(pods, hubPod('edge-1'))
  cluster.sandbox.create(pods, hubPod('edge-2'))
  const { bin, seen } = hubBehindKubectl(t)
  const words = ['edge-1', 'get', 'configmaps/web', '-n', 'shop']
  const { code, out, err } = await why(cluster, bin, ...words)
  t.strictSame([code, err], [0, ''])
  t.match(out, /kubelet .* get .*configmaps\/web\u{fffd}\[2J .* 503 .*not recorded\n/u)
  t.match(
    out,
    /\nWithout a link it would answer from these:\nCOLLECTION .*\nshop\/configmaps .* 3\n$/,
  )
  const [first = '', second = ''] = readFileSync(seen, 'utf8').split('\n')
  t.equal(
    first,
    `exec --kubeconfig=${cluster.kubeconfig} --namespace=kube-system nodehub-edge-1 -- /usr/local/bin/node /app/dist/src/main.js inspect requests --verb=get --resource=configmaps --namespace=shop --name=web --output=json --serve-port=20267`,
  )
  t.match(second, ' inspect cache --output=json --serve-port=20267')
  const asPath = ['edge-1', '/api/v1/namespaces/shop/configmaps?watch=true', '-o', 'json']
  const report = JSON.parse((await why(cluster, bin, ...asPath)).out) as JsonObject
  t.match(report, { requests: [{ code: 503 }], recorded: [collection] })
  t.match(
    readFileSync(seen, 'utf8'),
    'requests --verb=watch --resource=configmaps --namespace=shop --output=json',
  )
})

void t.test('where there is no way to a hub, why says what to run at the node', async (t) => {
  const cluster = await startTestCluster(t)
  addNode(cluster, 'edge-1')
  addNode(cluster, 'edge-2', { ready: 'Unknown' })
  const { bin } = hubBehindKubectl(t)
  const atNode =
    "Its reports are on the node's loopback alone: at the node, as root, run\n  nodehub inspect requests --verb=list --resource=endpointslices.discovery.k8s.io\n  nodehub inspect cache\n"
  const path = '/apis/discovery.k8s.io/v1/endpointslices'
  t.strictSame(await why(cluster, bin, 'edge-1', path), {
    code: 2,
    out: '',
    err: `kubectl nodehub why: the hub of edge-1, if there is one, runs in no pod. ${atNode}`,
  })
  t.match((await why(cluster, bin, 'edge-2', path)).err, /edge-2 is offline since 2.*Z\. Its/)
  cluster.sandbox.create(pods, hubPod('edge-1'))
  const empty = t.testdir({ bin: {} })
  const nowhere = await started(
    nodehubProgram,
    ['kubectl', 'why', 'edge-1', path, `--kubeconfig=${cluster.kubeconfig}`],
    { PATH: join(empty, 'bin') },
  )
  t.equal(nowhere.err, `kubectl nodehub why: there is no kubectl in PATH. ${atNode}`)
  const failing = t.testdir({ kubectl: '#!/bin/sh\nprintf "no route\\033[2J\\n" >&2\nexit 1\n' })
  chmodSync(join(failing, 'kubectl'), 0o755)
  t.match(
    (await why(cluster, failing, 'edge-1', path)).err,
    'kubectl nodehub why: kubectl exec: no route\u{fffd}[2J. Its reports are',
  )
})

void t.test('a request that cannot be understood is refused with what is wrong', async (t) => {
  for (const [words, wrong] of [
    [['edge-1'], 'it needs NODE REQUEST'],
    [['edge-1', 'get'], 'REQUEST is VERB RESOURCE[/NAME], or a path that begins with /'],
    [['edge-1', '/version'], '"/version" is about no resource'],
    [['edge-1', 'get', 'pods', 'web'], '"web" is one word too many'],
  ] as const)
    t.strictSame(await said((terminal) => runCli(['kubectl', 'why', ...words], terminal)), {
      code: 2,
      out: '',
      err: `kubectl nodehub why: invalid arguments:\n  ${wrong}\nSee kubectl nodehub why --help.\n`,
    })
})
