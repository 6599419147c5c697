import t from 'tap'
import { at, objectOf, type Client } from '../kit/client.ts'
import { allServices, pod, pods, podsOfNode, service, services } from '../kit/cloud.ts'
import { startCloud, startTestHub, type CloudServer } from '../kit/hub.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'

const ofAnyAge = `${podsOfNode}&resourceVersion=0`
const aPod = '/api/v1/namespaces/default/pods/a'

/** Answers that are long: lists and watches. Those of one object, and probes, pass. */
const isLong = ({ path }: SeenRequest): boolean => /\/(?:pods|services)$/.test(path)

const isListOfPods = ({ path, query }: SeenRequest): boolean =>
  path === '/api/v1/pods' && !query.has('watch')

function change(cloud: CloudServer, name = 'a'): void {
  cloud.sandbox.update(pods, { ...cloud.sandbox.get(pods, name, 'default'), ...relabelled(name) })
}

const relabelled = (name: string) => {
  const { metadata, ...rest } = pod(name) as { metadata: object }
  return { ...rest, metadata: { ...metadata, labels: { changed: 'true' } } }
}

const versionOf = async (client: Client, path: string): Promise<unknown> =>
  at(objectOf(await client.get(path)), 'metadata', 'resourceVersion')

async function listed(client: Client, path: string): Promise<readonly unknown[]> {
  const { names, resourceVersion } = await client.list(path)
  return [names, resourceVersion]
}

/** The status of a list, or `undefined` where it broke off. */
const statusOf = (client: Client, path: string): Promise<number | undefined> =>
  client.get(path).then(
    ({ status }) => status,
    () => undefined,
  )

const initialEvents = {
  allowWatchBookmarks: 'true',
  resourceVersion: '0',
  resourceVersionMatch: 'NotOlderThan',
  sendInitialEvents: 'true',
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `a list that breaks off is not given from before what a get has shown: ${encoding}`,
    async (t) => {
      const cloud = await startCloud(t)
      cloud.addPods('a', 'b')
      const hub = await startTestHub(t, { upstreams: [cloud] })
      const kubelet = hub.as('kubelet', { encoding })
      const before = await listed(kubelet, ofAnyAge)
      {
        using _cut = cloud.sandbox.faults.cut(30, isLong)
        t.strictSame(await listed(kubelet, ofAnyAge), before, 'while nothing newer was shown')
        change(cloud)
        t.equal((await kubelet.get(aPod)).status, 200)
        t.not(await statusOf(kubelet, ofAnyAge), 200)
        t.not(await statusOf(kubelet, `${ofAnyAge}&limit=500`), 200)
        t.not(await statusOf(kubelet, '/api/v1/namespaces/default/pods?resourceVersion=0'), 200)
        const [, resourceVersion] = before
        t.not(
          await statusOf(kubelet, `${podsOfNode}&resourceVersion=${String(resourceVersion)}`),
          200,
        )
        const watch = await kubelet.watch(podsOfNode, initialEvents)
        t.strictSame(await watch.rest(), [], 'nor are initial events')
        t.equal(hub.hub.online(), true)
        await hub.restart()
        await hub.online()
        t.not(await statusOf(hub.as('kubelet', { encoding }), ofAnyAge), 200, 'nor after a restart')
      }
      const { resourceVersion } = await hub.as('kubelet', { encoding }).list(ofAnyAge)
      t.equal(resourceVersion, cloud.sandbox.version)
    },
  )
}

void t.test('no list is given from before what a watch of a part has shown', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet')
  const all = '/api/v1/pods?resourceVersion=0'
  await kubelet.list(all)
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  change(cloud)
  t.match(await watch.next(), { type: 'MODIFIED' })
  using _cut = cloud.sandbox.faults.cut(30, isListOfPods)
  t.not(await statusOf(kubelet, all), 200)
  t.equal(await statusOf(kubelet, ofAnyAge), 200, 'what the watch has brought up is given')
})

void t.test('no list is given with an object that a get has shown to be gone', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet')
  await kubelet.list(ofAnyAge)
  cloud.sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
  t.equal((await kubelet.get(aPod)).status, 404)
  {
    using _cut = cloud.sandbox.faults.cut(30, isLong)
    t.not(await statusOf(kubelet, ofAnyAge), 200)
  }
  t.strictSame((await kubelet.list(ofAnyAge)).names, ['default/b'])
  const asked = cloud.sandbox.requests.filter(isListOfPods).at(-1)
  t.equal(asked?.query.get('resourceVersion'), null, 'only a consistent read is surely without it')
})

void t.test('a caller that was shown nothing newer gets its own list', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const token = cloud.sandbox.token('system:serviceaccount:default:reader')
  const reader = hub.as('kube-proxy', { token })
  const { names } = await reader.list(ofAnyAge)
  change(cloud)
  await hub.as('kubelet').get(aPod)
  using _cut = cloud.sandbox.faults.cut(30, isLong)
  t.strictSame((await reader.list(ofAnyAge)).names, names)
})

void t.test('a list of any age is requested not older than what a get has shown', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet')
  await kubelet.list(ofAnyAge)
  change(cloud)
  const shown = await versionOf(kubelet, aPod)
  await kubelet.list(ofAnyAge)
  const asked = cloud.sandbox.requests.filter(isListOfPods).at(-1)
  t.equal(asked?.query.get('resourceVersion'), shown)
  t.equal(asked?.query.get('resourceVersionMatch'), 'NotOlderThan')
})

void t.test('a shared list is not given from before what a get has shown', async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(services, service('a', '10.96.1.1'))
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const proxy = hub.as('kube-proxy')
  const { resourceVersion } = await proxy.list(`${allServices}?resourceVersion=0`)
  const watch = await proxy.watch(allServices, { resourceVersion })
  cloud.sandbox.create(services, service('b', '10.96.1.2'))
  t.match(await watch.next(), { type: 'ADDED' })
  using _silent = cloud.sandbox.faults.freeze(({ query }) => query.has('watch'))
  cloud.sandbox.create(services, service('c', '10.96.1.3'))
  t.equal((await proxy.get('/api/v1/namespaces/default/services/c')).status, 200)
  t.strictSame((await proxy.list(`${allServices}?resourceVersion=0`)).names, [
    'default/a',
    'default/b',
    'default/c',
  ])
})

void t.test(
  'without the cloud a list is what the cloud last gave whole, and a get the newest of its object',
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a', 'b')
    const hub = await startTestHub(t, { upstreams: [cloud] })
    const before = await listed(hub.as('kubelet'), ofAnyAge)
    change(cloud)
    const shown = await versionOf(hub.as('kubelet'), aPod)
    await cloud.unplug()
    await hub.offline()
    for (const when of ['at once', 'after a restart']) {
      const kubelet = hub.as('kubelet')
      t.strictSame(await listed(kubelet, ofAnyAge), before, when)
      t.strictSame(await listed(kubelet, podsOfNode), before, when)
      t.equal(await versionOf(kubelet, aPod), shown, when)
      await hub.restart()
    }
  },
)
