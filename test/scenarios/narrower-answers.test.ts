import t from 'tap'
import { at, objectOf, type Client, withInitialEvents } from '../kit/client.ts'
import { allServices, pod, pods, podsOfNode, service, services } from '../kit/cloud.ts'
import {
  onlineNode,
  goOnline,
  goOffline,
  startCloud,
  startTestHub,
  type CloudServer,
} from '../kit/hub.ts'

const namespaces = { group: '', version: 'v1', resource: 'namespaces' }

/** Pods on two nodes and in two namespaces, one of them on the host's network. */
function fill({ sandbox }: CloudServer): void {
  sandbox.create(namespaces, { metadata: { name: 'plant' } })
  sandbox.create(pods, pod('a'))
  sandbox.create(
    pods,
    pod('b', { metadata: { name: 'b', namespace: 'plant', labels: { x: '1' } } }),
  )
  sandbox.create(
    pods,
    pod('c', {
      spec: { nodeName: 'edge-2', hostNetwork: true, containers: [{ name: 'm', image: 'i' }] },
    }),
  )
  sandbox.create(services, service('web', '10.0.0.1'))
  sandbox.create(services, service('headless', 'None'))
}

/** Queries that a list of all pods or services answers. */
const narrower = [
  '/api/v1/namespaces/plant/pods',
  '/api/v1/namespaces/nowhere/pods',
  '/api/v1/pods?labelSelector=app%3Da',
  '/api/v1/pods?labelSelector=app!%3Da,!x',
  podsOfNode,
  `${podsOfNode}&labelSelector=x`,
  '/api/v1/pods?fieldSelector=spec.hostNetwork%3Dfalse,status.phase!%3DFailed',
  '/api/v1/pods?fieldSelector=metadata.name%3Da',
  '/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Da',
  '/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dnone',
  `${allServices}?fieldSelector=spec.clusterIP!%3DNone`,
]

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`a list never requested is answered from a wider one: ${encoding}`, async (t) => {
    const cloud = await startCloud(t)
    fill(cloud)
    const direct = cloud.as('tester', { encoding })
    const inTheCloud = await Promise.all(narrower.map((path) => direct.list(path)))
    const hub = await startTestHub(t, { upstreams: [cloud] })
    const kubelet = hub.as('kubelet', { encoding })
    const all = await kubelet.list('/api/v1/pods')
    await kubelet.list(allServices)
    await goOffline(cloud, hub)
    for (const [i, path] of narrower.entries()) {
      const offline = await kubelet.list(path)
      t.strictSame(objectOf(offline.answer), objectOf(inTheCloud[i]!.answer), path)
      t.equal(offline.resourceVersion, all.resourceVersion, 'at the version of the wider list')
    }
    t.equal(
      (
        await hub
          .as('kubelet', { encoding: encoding === 'json' ? 'protobuf' : 'json' })
          .get(podsOfNode)
      ).status,
      503,
    )
  })
}

void t.test('metadata is answered from wider lists as far as it tells', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  fill(cloud)
  const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
  const kubectl = hub.as('kubectl', { accept })
  const path = '/api/v1/namespaces/plant/pods?labelSelector=x%3D1'
  const direct = await cloud.as('kubectl', { accept }).get(path)
  await kubectl.get('/api/v1/pods')
  await goOffline(cloud, hub)
  t.strictSame(objectOf(await kubectl.get(path)), objectOf(direct))
  t.equal((await kubectl.get(podsOfNode)).status, 503, 'no item says where its pod runs')
})

/** The status of each offline answer. */
const statuses = async (client: Client, paths: readonly string[]): Promise<number[]> =>
  Promise.all(paths.map(async (path) => (await client.get(path)).status))

void t.test('no list that may hold less, or cannot be evaluated, gives an answer', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  fill(cloud)
  const kubelet = hub.as('kubelet')
  await kubelet.list('/api/v1/namespaces/plant/pods')
  await kubelet.list('/api/v1/pods?labelSelector=app%20in%20(a,b)')
  await kubelet.list(allServices)
  await goOffline(cloud, hub)
  const never = [
    '/api/v1/pods',
    '/api/v1/namespaces/default/pods',
    '/api/v1/pods?labelSelector=app%3Da',
    '/api/v1/pods?fieldSelector=metadata.namespace%3Dplant',
    '/apis/plant.example/v1/pumps?fieldSelector=spec.nothing%3D1',
    '/apis/plant.example/v1/pumps?watch=true&fieldSelector=spec.nothing%3D1',
  ]
  t.strictSame(
    await statuses(kubelet, never),
    never.map(() => 503),
  )
  const others = hub.as('kubelet', { token: cloud.sandbox.token('other') })
  t.not(
    (await others.get('/api/v1/namespaces/plant/pods')).status,
    200,
    'another caller was given it',
  )
})

void t.test('the newest wider list answers, and its own record before any', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  fill(cloud)
  const kubelet = hub.as('kubelet')
  const own = '/api/v1/namespaces/plant/pods?labelSelector=x'
  await kubelet.list(own)
  await kubelet.list('/api/v1/pods')
  cloud.sandbox.create(
    pods,
    pod('d', { metadata: { name: 'd', namespace: 'plant', labels: { x: '2' } } }),
  )
  await kubelet.list('/api/v1/namespaces/plant/pods')
  await goOffline(cloud, hub)
  t.strictSame((await kubelet.list(own)).names, ['plant/b'])
  t.strictSame((await kubelet.list('/api/v1/namespaces/plant/pods?labelSelector=x%3D2')).names, [
    'plant/d',
  ])
})

void t.test(
  'F13: a list that has become empty in the cloud is empty offline, and one that failed is as it was',
  async (t) => {
    const { cloud, hub } = await onlineNode(t)
    fill(cloud)
    const kubelet = hub.as('kubelet')
    const before = await kubelet.list(allServices)
    {
      using _failing = cloud.sandbox.faults.fail(500, ({ path }) => path === allServices)
      t.equal((await kubelet.get(allServices)).status, 500)
    }
    await goOffline(cloud, hub)
    t.strictSame((await kubelet.list(allServices)).names, before.names)
    await goOnline(cloud, hub)
    for (const name of ['web', 'headless']) cloud.sandbox.delete(services, name, 'default')
    const after = await kubelet.list(allServices)
    await goOffline(cloud, hub)
    const offline = await kubelet.list(allServices)
    t.strictSame(offline.answer.body, after.answer.body, 'it is what the cloud said')
  },
)

void t.test(
  'a watch of a part gets a wider watch’s events as its selector sees them',
  async (t) => {
    const { cloud, hub } = await onlineNode(t)
    fill(cloud)
    const kubelet = hub.as('kubelet')
    await kubelet.list('/api/v1/pods')
    await goOffline(cloud, hub)
    const part = '/api/v1/pods?labelSelector=x%3D1'
    const { resourceVersion } = await kubelet.list(part)
    const watch = await kubelet.watch(part, { resourceVersion })
    await goOnline(cloud, hub)
    const label = (name: string, x: string) =>
      cloud.as('tester').send(`/api/v1/namespaces/default/pods/${name}`, {
        method: 'PATCH',
        headers: { 'Content-Type': 'application/merge-patch+json' },
        body: JSON.stringify({ metadata: { labels: { x } } }),
      })
    for (const [name, x] of [
      ['a', '1'],
      ['a', '2'],
      ['c', '2'],
      ['c', '1'],
    ] as const) {
      t.equal((await label(name, x)).status, 200)
    }
    t.strictSame(
      (await watch.take(3)).map(({ type, object }) => [
        type,
        at(object, 'metadata', 'name'),
        at(object, 'metadata', 'labels', 'x'),
      ]),
      [
        ['ADDED', 'a', '1'],
        ['DELETED', 'a', '1'],
        ['ADDED', 'c', '1'],
      ],
    )
  },
)

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `F8: a WatchList ends with the right bookmark online and offline: ${encoding}`,
    async (t) => {
      const { cloud, hub } = await onlineNode(t)
      fill(cloud)
      const kubelet = hub.as('kubelet', { encoding })
      const listed = async (path: string) => {
        const watch = await kubelet.watch(path, {
          ...withInitialEvents,
          timeoutSeconds: '1',
        })
        return (await watch.rest()).map(({ type, object }) => [
          type,
          at(object, 'metadata', 'name') ?? '',
          type === 'BOOKMARK' ? at(object, 'metadata', 'resourceVersion') : '',
          at(object, 'metadata', 'annotations', 'k8s.io/initial-events-end') ?? '',
        ])
      }
      const online = await listed('/api/v1/pods')
      t.equal(online.length, 4)
      await goOffline(cloud, hub)
      t.strictSame(await listed('/api/v1/pods'), online)
      const bookmark = online.at(-1)
      t.equal(bookmark?.[3], 'true')
      t.strictSame(
        await listed('/api/v1/namespaces/plant/pods'),
        [['ADDED', 'b', '', ''], bookmark],
        'of a part of it at the same version',
      )
    },
  )
}
