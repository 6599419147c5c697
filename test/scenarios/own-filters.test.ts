import t from 'tap'
import { loadModules } from '../../src/hub/wiring/enabled-filters.ts'
import { at, objectOf } from '../kit/client.ts'
import { allServices, service, services } from '../kit/cloud.ts'
import { startOnlineHub, startCloud, type TestHub } from '../kit/hub.ts'
import { definePools, nodePool, poolResource } from '../kit/node-pools.ts'
import { FilterFolder, moduleOf } from '../kit/own-filter.ts'
import type { Teardown } from '../kit/wire/wire.ts'

/** Withholds the services of that name. */
const withholding = (name: string): string =>
  moduleOf('own', `service.name === '${name}' ? 'withhold' : 'leave'`)

async function hubWith(t: Teardown, ...files: string[]): Promise<TestHub> {
  const cloud = await startCloud(t)
  for (const name of ['a', 'b']) cloud.sandbox.create(services, service(name, `10.96.0.1`))
  const flags = [`--filter-module=${files.join(',')}`]
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags })
  return hub
}

/** As the process does when a file has changed. */
async function reread({ hub, config }: TestHub): Promise<void> {
  const read = await loadModules(config.filters.modules)
  if ('mistakes' in read) hub.rejectConfig(read.mistakes)
  else hub.reconfigure(config, { filters: read.filters, waiting: [] })
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`a module acts as the hub's own filters do: ${encoding}`, async (t) => {
    const folder = new FilterFolder(t)
    const hub = await hubWith(t, folder.write('own.mjs', withholding('a')))
    const proxy = hub.as('kube-proxy', { encoding })
    t.strictSame((await proxy.list(allServices)).names, ['default/b'])
    t.equal((await proxy.get('/api/v1/namespaces/default/services/a')).status, 404)
    t.ok((await hub.metric('nodehub_filter_decisions_total{filter="own",result="withheld"}')) > 0)
    const other = hub.as('kubelet', { encoding })
    t.strictSame((await other.list(allServices)).names, ['default/a', 'default/b'])
  })
}

void t.test('a module acts where the API server has not the preferred encoding', async (t) => {
  const folder = new FilterFolder(t)
  const own = withholding('a').replace("group: ''", "group: 'apps.openyurt.io'")
  const cloud = await startCloud(t)
  definePools(cloud, 'v1beta2')
  for (const name of ['a', 'b']) cloud.sandbox.create(poolResource('v1beta2'), nodePool(name, []))
  const file = folder.write('own.mjs', own.replace("'services'", "'nodepools'"))
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags: [`--filter-module=${file}`] })
  const accept = 'application/vnd.kubernetes.protobuf;stream=watch,application/json'
  const watch = await hub
    .as('kube-proxy', { accept })
    .watch('/apis/apps.openyurt.io/v1beta2/nodepools')
  t.match(await watch.next(), { object: { metadata: { name: 'b' } } })
})

void t.test('a bad new version is refused and reported, and the last good one stays', async (t) => {
  const folder = new FilterFolder(t)
  const hub = await hubWith(t, folder.write('own.mjs', withholding('a')))
  const proxy = hub.as('kube-proxy')
  folder.write('own.mjs', withholding('b').replace('pass', 'ignore'))
  await reread(hub)
  t.strictSame((await proxy.list(allServices)).names, ['default/b'])
  t.match(await hub.readyz(), /\[ \]config unusable since .*onError must be pass or withhold/)
  t.equal((await hub.ops.get('/readyz')).status, 200)
  t.equal(await hub.metric('nodehub_config_reloads_total{result="failure"}'), 1)
  folder.write('own.mjs', withholding('b'))
  await reread(hub)
  t.strictSame((await proxy.list(allServices)).names, ['default/a'])
  t.notMatch(await hub.readyz(), /config unusable/)
})

void t.test(
  'a filter that throws is counted, and onError says what becomes of the object',
  async (t) => {
    const folder = new FilterFolder(t)
    const throwing = moduleOf(
      'own',
      `{ if (service.name === 'a') throw new Error('a'); return 'leave' }`,
    )
    const hub = await hubWith(t, folder.write('own.mjs', throwing))
    const proxy = hub.as('kube-proxy')
    t.strictSame((await proxy.list(allServices)).names, ['default/a', 'default/b'])
    const failed = await hub.metric('nodehub_filter_errors_total{filter="own"}')
    t.ok(failed > 0)
    folder.write('own.mjs', throwing.replace(`'pass'`, `'withhold'`))
    await reread(hub)
    t.strictSame((await proxy.list(allServices)).names, ['default/b'])
  },
)

void t.test('a hub does not start with filters that it cannot use', async (t) => {
  const folder = new FilterFolder(t)
  await t.rejects(hubWith(t, folder.write('own.mjs', 'export const a = {}')), {
    code: 'UNUSABLE_FILTERS',
    message: /own\.mjs: a: name must be/,
  })
})

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`a module edits what a program gets: ${encoding}`, async (t) => {
    const folder = new FilterFolder(t)
    const editing = moduleOf(
      'own',
      `service.name === 'a' ? [
        { op: 'set', path: ['spec', 'ports', '*', 'port'], value: 80 },
        { op: 'set', path: ['metadata', 'labels', 'own'], value: 'was-' + service.name },
      ] : 'leave'`,
    )
    const hub = await hubWith(t, folder.write('own.mjs', editing))
    const proxy = hub.as('kube-proxy', { encoding })
    const list = objectOf((await proxy.list(allServices)).answer)
    t.equal(at(list, 'items', 0, 'spec', 'ports', 0, 'port'), 80)
    t.equal(at(list, 'items', 0, 'metadata', 'labels', 'own'), 'was-a')
    t.equal(at(list, 'items', 1, 'spec', 'ports', 0, 'port'), 443)
  })
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `a running watch goes over to changed filters by one list: ${encoding}`,
    async (t) => {
      const folder = new FilterFolder(t)
      const hub = await hubWith(t, folder.write('own.mjs', withholding('a')))
      const proxy = hub.as('kube-proxy', { encoding })
      const first = await proxy.list(allServices)
      t.strictSame(first.names, ['default/b'])
      const watch = await proxy.watch(allServices, { resourceVersion: first.resourceVersion })
      // Read all along, so that it is seen whenever it comes.
      const seen = watch.rest()
      folder.write('own.mjs', withholding('x').replace('pass', 'ignore'))
      await reread(hub)
      t.strictSame((await proxy.list(allServices)).names, ['default/b'], 'nothing has changed')
      folder.write('own.mjs', withholding('b'))
      await reread(hub)
      const events = await seen
      t.match(events.at(-1), { type: 'ERROR', object: { code: 410, reason: 'Expired' } })
      t.equal(events.length, 1, 'nothing was sent before that')
      const again = await proxy.list(allServices)
      t.strictSame(again.names, ['default/a'])
      const next = await proxy.watch(allServices, { resourceVersion: again.resourceVersion })
      t.equal(next.status, 200)
      next.hangUp()
    },
  )
}
