import t from 'tap'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import type { RequestEntry } from '../../../src/hub/wiring/recent-requests.ts'
import { service, services } from '../../kit/cloud.ts'
import { startCloud, startTestHub, type TestHub } from '../../kit/hub.ts'
import { until } from '../../kit/until.ts'

const flagsFor = (hub: TestHub): [string, string] => [
  `--serve-port=${hub.hub.opsPort}`,
  `--token-file=${hub.inspectTokenFile}`,
]

async function run(hub: TestHub, ...argv: string[]): Promise<string> {
  let out = ''
  const terminal = { out: (text: string) => (out += text), err: (text: string) => t.fail(text) }
  t.equal(await inspect.run(['requests', ...flagsFor(hub), ...argv], terminal), 0)
  return out
}

/** The entries once `path` is among them. */
const entriesWith = (hub: TestHub, path: string, code: number): Promise<readonly RequestEntry[]> =>
  until(`${path} among the requests`, async () => {
    const { items } = JSON.parse(await run(hub, '-o', 'json')) as { items: RequestEntry[] }
    return items.some((item) => item.path === path && item.code === code) && items
  })

const aPod = '/api/v1/namespaces/default/pods/a'

void t.test('each request is shown with what answered it and why, through an outage', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  cloud.sandbox.create(
    services,
    service('x-tunnel-server-internal-svc', '10.96.0.2', 'kube-system'),
  )
  cloud.sandbox.create(services, service('web', '10.96.0.3'))
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  const { body } = await hub.as('kubelet').get(`${aPod}?token=secret`)
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

  await cloud.unplug()
  await hub.offline()
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
  t.notMatch(table, 'token=secret')
})

void t.test('--watch prints each request as it ends', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  const command = ['src/main.ts', 'inspect', 'requests', ...flagsFor(hub), '-w', '-o', 'json']
  const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<RequestEntry> =>
    JSON.parse((await lines.next()).value ?? '') as RequestEntry
  await hub.as('kubelet').get(aPod)
  t.match(await next(), { path: aPod, component: 'kubelet' })
  await hub.as('kube-proxy').get('/version')
  t.match(await next(), { path: '/version', component: 'kube-proxy' })
})
