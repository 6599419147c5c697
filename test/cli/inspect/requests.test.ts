import t from 'tap'
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import type { RequestEntry } from '../../../src/hub/wiring/request-entry.ts'
import { serviceAccounts } from '../../../src/api/kube/resources.ts'
import { service, services } from '../../kit/cloud.ts'
import { nodehubProgram } from '../../kit/hub-programs.ts'
import { goOffline, onlineNode, startCloud, startTestHub, type TestHub } from '../../kit/hub.ts'
import { until } from '../../kit/until.ts'
import { portOf } from '../../kit/wire/listening.ts'
import { said, type Said } from '../../kit/terminal.ts'

const flagsFor = (hub: TestHub): [string, string] => [
  `--serve-port=${hub.hub.opsPort}`,
  `--token-file=${hub.inspectTokenFile}`,
]

const asked = (...argv: string[]): Promise<Said> =>
  said((terminal) => inspect.run(['requests', ...argv], terminal))

async function run(hub: TestHub, ...argv: string[]): Promise<string> {
  const { code, out, err } = await asked(...flagsFor(hub), ...argv)
  t.strictSame([code, err], [0, ''])
  return out
}

/** The entries once `path` is among them. */
const entriesWith = (hub: TestHub, path: string, code: number): Promise<readonly RequestEntry[]> =>
  until(`${path} among the requests`, async () => {
    const { items } = JSON.parse(await run(hub, '-o', 'json')) as { items: RequestEntry[] }
    return items.some((item) => item.path === path && item.code === code) && items
  })

const aPod = '/api/v1/namespaces/default/pods/a'

void t.test('each request has its source and the reason, through an outage', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  cloud.sandbox.create(
    services,
    service('x-tunnel-server-internal-svc', '10.96.0.2', 'kube-system'),
  )
  cloud.sandbox.create(services, service('web', '10.96.0.3'))
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  const { body } = await hub.as('kubelet').get(`${aPod}?timeout=secret`)
  await hub.as('kube-proxy').get('/api/v1/services')
  const online = await entriesWith(hub, '/api/v1/services', 200)
  t.match(
    online.find(({ path }) => path === aPod),
    {
      component: 'kubelet',
      caller: 'node',
      verb: 'get',
      resource: 'pods',
      code: 200,
      source: 'cloud',
      bytes: body.byteLength,
      upstream: cloud.url,
    },
  )
  t.strictSame(online.find(({ path }) => path === '/api/v1/services')?.filtered?.objects, {
    edited: 0,
    withheld: 1,
  })

  await goOffline(cloud, hub)
  await hub.as('kubelet').get(aPod)
  await hub.as('kubelet').get('/api/v1/namespaces/default/secrets/none')
  const offline = await entriesWith(hub, '/api/v1/namespaces/default/secrets/none', 503)
  t.match(
    offline.findLast(({ path }) => path === aPod),
    { source: 'cache', reason: 'no API server is healthy' },
  )
  t.match(offline.at(-1), { source: 'hub', reason: /the answer is not in the cache/ })
  const table = await run(hub)
  t.match(table, /^TIME +COMPONENT +CALLER/)
  t.match(table, /kubelet +node +get +\S+pods\/a +200 +cache +\S+ +\d+ +no API server is healthy$/m)
  t.notMatch(table, 'timeout=secret')
})

void t.test('flags select requests at the hub', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  cloud.addPods('a')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  await hub.as('kubelet').get(aPod)
  await hub.as('kube-proxy').get('/api/v1/services')
  cloud.sandbox.create(serviceAccounts, { metadata: { name: 'reader', namespace: 'default' } })
  const till = hub.as('till', { token: await cloud.readerToken() })
  await till.get('/api/v1/nodes')
  await hub.as('kubelet').get('/api/v1/namespaces/shop/configmaps/none')
  await entriesWith(hub, '/api/v1/namespaces/shop/configmaps/none', 404)
  const pathsOf = async (...flags: string[]): Promise<readonly string[]> => {
    const { items } = JSON.parse(await run(hub, '-o', 'json', ...flags)) as {
      items: RequestEntry[]
    }
    return [...new Set(items.map(({ path }) => path))]
  }
  const all = [aPod, '/api/v1/services', '/api/v1/nodes', '/api/v1/namespaces/shop/configmaps/none']
  const [pod, services, ofAccount, none] = all
  for (const [flags, paths] of [
    [['--component=kube-proxy'], [services]],
    [['--component=kubelet,kube-proxy'], [pod, services, none]],
    [['--resource=pods'], [pod]],
    [['--verb=list'], [services, ofAccount]],
    [['--namespace=shop'], [none]],
    [['-n', 'default', '--name=a'], [pod]],
    [['--name=a', '-n=shop'], []],
    [['--code=4xx'], [none]],
    [['--code=200', '--component=kubelet'], [pod]],
    [['--source=cache'], []],
    [
      ['--source=cloud', '--user=node'],
      [pod, services, none],
    ],
    [['--user=system:serviceaccount:default:reader'], [ofAccount]],
    [['--slower-than=10m'], []],
    [['--slower-than=0'], all],
  ] as const)
    t.strictSame(
      (await pathsOf(...flags)).filter((path) => path !== '/version'),
      [...paths],
      flags.join(' '),
    )

  const sent = await hub.ops.get('/inspect/requests?resource=pods')
  t.equal((JSON.parse(sent.body.toString()) as { items: object[] }).items.length, 1)
  const strange = await hub.ops.get('/inspect/requests?colour=red')
  t.equal(strange.status, 400)
  t.match(strange.body.toString(), 'requests are not selected by "colour"')
  t.match(await asked('--code=6xx', '--source=moon', '--slower-than=late'), {
    code: 2,
    out: '',
    err: /--code: .*no status code[\s\S]*--source: [\s\S]*--slower-than: /,
  })
})

void t.test('--watch prints each request as it ends', async (t) => {
  const { hub } = await onlineNode(t, 'a')
  const command = [nodehubProgram, 'inspect', 'requests', ...flagsFor(hub), '-w', '-o', 'json']
  const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<RequestEntry> =>
    JSON.parse((await lines.next()).value ?? '') as RequestEntry
  await hub.as('kubelet').get(aPod)
  t.match(await next(), { path: aPod, component: 'kubelet' })
  await hub.as('kube-proxy').get('/version')
  t.match(await next(), { path: '/version', component: 'kube-proxy' })

  const some = [nodehubProgram, 'inspect', 'requests', ...flagsFor(hub), '-w', '--code=4xx']
  const tail = spawn(process.execPath, some, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => tail.kill())
  const failures = createInterface({ input: tail.stdout })[Symbol.asyncIterator]()
  await hub.as('kubelet').get(aPod)
  await hub.as('kubelet').get('/api/v1/namespaces/default/pods/none')
  t.match((await failures.next()).value, / get +\S+pods\/none +404 /, 'the first that it prints')
})

void t.test('--watch prints each request once, whatever its time', async (t) => {
  const entry = (id: string, at: string) => ({ id, at })
  const [a, b] = [entry('a', '2026-01-01T10:00:00.001Z'), entry('b', '2026-01-01T10:00:00.001Z')]
  // The clock was set back.
  const [c, d] = [entry('c', '2026-01-01T09:00:00.001Z'), entry('d', '2026-01-01T09:00:00.001Z')]
  const streams = [[[a], [b], [c]], [[a, b, c, d]]]
  const hub = createServer((_, response) => {
    for (const batch of streams.shift() ?? []) response.write(`data: ${JSON.stringify(batch)}\n\n`)
    // The first reader is cut, and comes again.
    if (streams.length > 0) response.end()
  })
  const flags = [`--serve-port=${await portOf(t, hub)}`, '-w', '-o', 'json']
  const child = spawn(process.execPath, [nodehubProgram, 'inspect', 'requests', ...flags], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.teardown(() => child.kill())
  const printed: unknown[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    printed.push(JSON.parse(line))
    if (printed.length === 4) break
  }
  t.strictSame(printed, [a, b, c, d])
})
