import t from 'tap'
import {
  at,
  nameOf,
  objectOf,
  type Client,
  type Watching,
  withInitialEvents,
} from '../kit/client.ts'
import { configMaps, pods, podsOfNode, type CloudServer } from '../kit/cloud.ts'
import { startOnlineHub, onlineNode, goOffline, startCloud, type TestHub } from '../kit/hub.ts'
import { until } from '../kit/until.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'

const path = '/api/v1/namespaces/default/configmaps'

const isWatch = (request: SeenRequest): boolean =>
  request.path === path && request.query.get('watch') === 'true'

const add = (cloud: CloudServer, name: string): void => {
  cloud.sandbox.create(configMaps, { metadata: { name, namespace: 'default' }, data: {} })
}

async function informer(client: Client): Promise<Watching> {
  const { resourceVersion } = await client.list(path)
  return client.watch(path, { resourceVersion, allowWatchBookmarks: 'true' })
}

const ended = (reason: string): string => `nodehub_cacher_watchers_ended_total{reason="${reason}"}`

void t.test(
  'a restored cluster is answered with 410, and what is listed then counts',
  async (t) => {
    const cloud = await startCloud(t, { firstVersion: 5000 })
    add(cloud, 'a')
    const hub = await startOnlineHub(t, { upstreams: [cloud] })
    const kubelet = hub.as('kubelet')
    const watch = await informer(kubelet)
    await goOffline(cloud, hub)
    const restored = await startCloud(t, { firstVersion: 2000, port: cloud.sandbox.port })
    add(restored, 'old')
    await hub.online()
    const [error, ...rest] = await watch.rest()
    t.match(error, { type: 'ERROR', object: { code: 410, reason: 'Expired' } })
    t.strictSame(rest, [])
    t.equal(await hub.metric(ended('expired')), 1)
    const { names, resourceVersion } = await kubelet.list(path)
    t.strictSame([names, resourceVersion], [['default/old'], restored.sandbox.version])
    const again = await kubelet.watch(path, { resourceVersion })
    add(restored, 'new')
    t.match(await again.next(), { type: 'ADDED', object: { metadata: { name: 'new' } } })
  },
)

for (const restarts of [false, true]) {
  void t.test(
    `a watch that resumes from before a restore is answered 410, ${restarts ? 'also by the next process' : 'by the hub that has shown it'}`,
    async (t) => {
      const cloud = await startCloud(t, { firstVersion: 5000 })
      const hub = await startOnlineHub(t, { upstreams: [cloud] })
      const before = await informer(hub.as('coredns'))
      add(cloud, 'a')
      await before.next()
      const resourceVersion = cloud.sandbox.version
      before.hangUp()
      if (restarts) await hub.stop()
      await cloud.unplug()
      if (!restarts) await hub.offline()
      const restored = await startCloud(t, { firstVersion: 2000, port: cloud.sandbox.port })
      if (restarts) await hub.start()
      await hub.online()
      const watch = await hub.as('coredns').watch(path, { resourceVersion })
      add(restored, 'old')
      t.match(await watch.rest(), [{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }])
    },
  )
}

void t.test('a token that is withdrawn ends the watches that run with it', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const [kept, withdrawn] = ['kept', 'withdrawn'].map((name) => cloud.sandbox.token(name))
  const clients = [withdrawn, kept].map((token) => hub.as('coredns', { token: token ?? '' }))
  const watches = []
  for (const client of clients) watches.push(await informer(client))
  const resourceVersion = cloud.sandbox.version
  await goOffline(cloud, hub)
  cloud.sandbox.revoke(withdrawn ?? '')
  add(cloud, 'a')
  await cloud.plug()
  for (const watch of watches) {
    t.strictSame(await watch.rest(), [], 'it is sent nothing')
    t.equal(await watch.over, 'ended')
  }
  t.equal(await hub.metric(ended('over')), 2)
  const [going, staying] = await Promise.all(
    clients.map((client) => client.watch(path, { resourceVersion })),
  )
  t.equal(going?.status, 401)
  t.match(await staying?.next(), { type: 'ADDED', object: { metadata: { name: 'a' } } })
})

void t.test('a WatchList that is cut goes on after its initial events', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const watch = await hub.as('kubelet').watch(podsOfNode, withInitialEvents)
  const [added, end] = await watch.take(2)
  t.match([added?.type, end?.type], ['ADDED', 'BOOKMARK'])
  await goOffline(cloud, hub)
  cloud.sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
  cloud.addPods('b')
  await cloud.plug()
  t.strictSame(
    (await watch.take(2)).map(({ type, object }) => `${type} ${nameOf(object)}`),
    ['DELETED default/a', 'ADDED default/b'],
  )
})

void t.test('a WatchList of any age joins what is watched already', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  add(cloud, 'a')
  const kubelet = hub.as('kubelet')
  const first = await informer(kubelet)
  add(cloud, 'b')
  await first.next()
  const second = await kubelet.watch(path, { ...withInitialEvents, resourceVersion: '0' })
  const events = await second.take(3)
  t.strictSame(
    events.map(({ type, object }) => [type, at(object, 'metadata', 'name')]),
    [
      ['ADDED', 'a'],
      ['ADDED', 'b'],
      ['BOOKMARK', undefined],
    ],
  )
  t.equal(cloud.sandbox.watchCount(isWatch), 1)
})

for (const [of, query, first] of [
  ['without a version', {}, ['ADDED default/a', 'ADDED default/b']],
  ['of any age', { resourceVersion: '0' }, ['ADDED default/a', 'ADDED default/b']],
  ['without the state', { sendInitialEvents: 'false', resourceVersionMatch: 'NotOlderThan' }, []],
] as const) {
  void t.test(`what a watch ${of} has shown is what is read offline`, async (t) => {
    const { cloud, hub } = await onlineNode(t)
    const kubelet = hub.as('kubelet')
    add(cloud, 'a')
    add(cloud, 'b')
    await kubelet.list(path)
    const watch = await kubelet.watch(path, query)
    const shown = async (count: number): Promise<string[]> =>
      (await watch.take(count)).map(({ type, object }) => `${type} ${nameOf(object)}`)
    t.strictSame(await shown(first.length), first)
    cloud.touch(configMaps, 'a', 'default')
    const { version } = cloud.sandbox
    cloud.sandbox.delete(configMaps, 'b', 'default')
    t.strictSame(await shown(2), ['MODIFIED default/a', 'DELETED default/b'])
    await goOffline(cloud, hub)
    t.equal(at(objectOf(await kubelet.get(`${path}/a`)), 'metadata', 'resourceVersion'), version)
    t.equal((await kubelet.get(`${path}/b`)).status, 404)
    t.strictSame((await kubelet.list(path)).names, ['default/a'])
  })
}

/** A client's watch whose collection is refused with `status` when the hub is online again. */
async function refusedWatch(
  t: Teardown,
  status: number,
): Promise<{ cloud: CloudServer; hub: TestHub; watch: Watching; refusal: Disposable }> {
  const { cloud, hub } = await onlineNode(t)
  const watch = await informer(hub.as('kubelet'))
  await goOffline(cloud, hub)
  const refusal = cloud.sandbox.faults.fail(status, (request) => request.path === path)
  await cloud.plug()
  return { cloud, hub, watch, refusal }
}

for (const status of [400, 403, 404, 422]) {
  void t.test(`a watch that the API server refuses to resume with ${status} ends`, async (t) => {
    const { hub, watch } = await refusedWatch(t, status)
    t.strictSame(await watch.rest(), [])
    t.equal(await hub.metric(ended('over')), 1)
  })
}

void t.test('a watch stays through a failure that may pass', async (t) => {
  const { cloud, watch, refusal } = await refusedWatch(t, 429)
  const tries = (): number => cloud.sandbox.requests.filter((each) => each.path === path).length
  const before = tries()
  await until('a try', () => tries() > before)
  refusal[Symbol.dispose]()
  add(cloud, 'a')
  t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'a' } } })
})
