import t, { type Test } from 'tap'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import { ClientInformer } from '../../src/sandbox/client-informer.ts'
import { allServices, pods, podsOfNode, service, services } from '../kit/cloud.ts'
import { onlineNode, goOnline, goOffline, onlineNodeWith } from '../kit/hub.ts'
import type { TestHubOptions } from '../kit/hub-config.ts'
import { Condition } from '../kit/condition.ts'
import { until } from '../kit/until.ts'

const isWatch = ({ query }: SeenRequest): boolean => query.get('watch') === 'true'

void t.test('F25: cached watches go on by one upstream watch when the cloud is back', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  await goOffline(cloud, hub)
  const watches = await Promise.all(
    Array.from({ length: 5 }, () => kubelet.watch(podsOfNode, { resourceVersion })),
  )
  cloud.addPods('b')
  await goOnline(cloud, hub)
  for (const watch of watches) {
    t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'b' } } })
  }
  t.equal(cloud.sandbox.watchCount(isWatch), 1)
})

void t.test('a watch outlives its cloud where it is recorded, and ends elsewhere', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const [kept, cut] = await Promise.all(
    [
      ['kubelet', podsOfNode],
      ['operator', '/api/v1/pods'],
    ].map(async ([component = '', path = '']) => {
      const client = hub.as(component)
      const { resourceVersion } = await client.list(path)
      return client.watch(path, { resourceVersion })
    }),
  )
  await cloud.unplug()
  await cut?.end()
  await hub.offline()
  cloud.addPods('b')
  await cloud.plug()
  t.match(await kept?.next(), { type: 'ADDED', object: { metadata: { name: 'b' } } })
})

/** A kubelet that watches the pods of its node, of which there is one, through a hub. */
async function podsWatched(t: Test, options: Omit<TestHubOptions, 'upstreams'> = {}) {
  const { cloud, hub } = await onlineNodeWith(t, options, 'a')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  return { cloud, hub, watch: await kubelet.watch(podsOfNode, { resourceVersion }) }
}

void t.test('a watch outlives an API server that freezes', async (t) => {
  const { cloud, hub, watch } = await podsWatched(t, {
    config: { heartbeat: { intervalMs: 40, timeoutMs: 300, failedRetry: 1, healthyThreshold: 1 } },
  })
  {
    using _frozen = cloud.sandbox.faults.freeze()
    await hub.offline()
    cloud.addPods('b')
  }
  t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'b' } } })
})

void t.test(
  'F25: a reflector through ten cuts ends where the cloud is, without listing again',
  async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a', 'b', 'c')
    const changes = new Condition()
    const reflectors = (['json', 'protobuf'] as const).map(
      (encoding) =>
        new ClientInformer({
          server: hub.url,
          userAgent: 'kubelet/v1.35.0',
          path: '/api/v1/pods',
          encoding,
          onChange: () => changes.changed(),
        }),
    )
    t.teardown(() => Promise.all(reflectors.map((each) => each[Symbol.asyncDispose]())))
    const inTheCloud = (): string[] =>
      cloud.sandbox
        .list(pods)
        .map(({ metadata }) => `${metadata.namespace}/${metadata.name}@${metadata.resourceVersion}`)
        .sort()
    const held = (reflector: ClientInformer): string[] =>
      [...reflector.items].map(([key, object]) => `${key}@${object.resourceVersion}`).sort()
    const inStep = async (): Promise<void> => {
      const isSame = (): boolean =>
        reflectors.every((each) => held(each).join() === inTheCloud().join())
      await changes.until(isSame)
    }
    await inStep()
    for (let cut = 0; cut < 10; cut++) {
      await goOffline(cloud, hub)
      // While no client sees it: something comes, something goes, something changes.
      cloud.addPods(`new-${cut}`)
      cloud.touch(pods, 'a', 'default')
      if (cut > 0) {
        cloud.sandbox.delete(pods, `new-${cut - 1}`, 'default', { gracePeriodSeconds: 0 })
      }
      await goOnline(cloud, hub)
      await inStep()
    }
    for (const reflector of reflectors) t.strictSame(held(reflector), inTheCloud())
    t.strictSame(
      reflectors.map(({ lists }) => lists),
      [1, 1],
      'each has listed once, at the beginning',
    )
    t.strictSame(
      reflectors.map(({ watches }) => watches),
      [1, 1],
      'and its watch has never ended',
    )
    await goOffline(cloud, hub)
    const { names } = await hub.as('kubelet').list('/api/v1/pods')
    t.strictSame(
      names,
      [...cloud.sandbox.list(pods)].map(({ metadata }) => `default/${metadata.name}`).sort(),
    )
  },
)

void t.test('compacted history leads to a list, with the deletions meanwhile', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a', 'b')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list('/api/v1/pods')
  await goOffline(cloud, hub)
  cloud.sandbox.delete(pods, 'b', 'default', { gracePeriodSeconds: 0 })
  cloud.sandbox.compact()
  await goOnline(cloud, hub)
  const watch = await kubelet.watch('/api/v1/pods', { resourceVersion })
  t.match(await watch.next(), { type: 'ERROR', object: { code: 410 } })
  const relisted = await kubelet.list(`/api/v1/pods?resourceVersion=${resourceVersion}`)
  t.strictSame(relisted.names, ['default/a'])
  await goOffline(cloud, hub)
  t.strictSame((await kubelet.list('/api/v1/pods')).names, ['default/a'])
  t.equal((await kubelet.get(`${allServices}/x`)).status, 503)
})

void t.test(
  'a list that brings no change lets no watch go on from a version before it',
  async (t) => {
    const { cloud, hub } = await onlineNode(t)
    for (const path of [podsOfNode, allServices]) {
      const client = hub.as('kubelet')
      const { resourceVersion } = await client.list(path)
      const open = await client.watch(path, { resourceVersion })
      const create = (name: string): string => {
        if (path === podsOfNode) cloud.addPods(name)
        else cloud.sandbox.create(services, service(name, '10.96.0.10'))
        return cloud.sandbox.version
      }
      const before = create('first')
      t.match(await open.next(), { type: 'ADDED' })
      await goOffline(cloud, hub)
      // A list through another hub has shown it.
      const between = create('brief')
      const gvr = path === podsOfNode ? pods : services
      cloud.sandbox.delete(gvr, 'brief', 'default', { gracePeriodSeconds: 0 })
      cloud.sandbox.compact()
      const from = { resourceVersion: between, allowWatchBookmarks: 'true' }
      const ahead = await client.watch(path, from)
      await goOnline(cloud, hub)
      const expired = [{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }]
      t.match(await ahead.rest(), expired, 'that was open')
      t.match(await (await client.watch(path, from)).rest(), expired, 'that comes later')
      const resumed = await client.watch(path, { resourceVersion: before })
      create('next')
      for (const watch of [open, resumed])
        t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'next' } } })
      resumed.hangUp()
      open.hangUp()
    }
  },
)

void t.test('a watch outlives what an API server refuses before it is ready', async (t) => {
  const { cloud, watch } = await podsWatched(t)
  cloud.addPods('b')
  t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'b' } } })
  {
    const isOfPods = ({ path }: SeenRequest): boolean => path === '/api/v1/pods'
    using _unready = cloud.sandbox.faults.fail(500, ({ path }) => path === '/readyz')
    using _refuses = cloud.sandbox.faults.fail(403, isOfPods)
    const before = cloud.sandbox.requests.filter(isOfPods).length
    cloud.sandbox.faults.reset()[Symbol.dispose]()
    await until(
      'the hub to be refused twice',
      () => cloud.sandbox.requests.filter(isOfPods).length >= before + 2,
    )
  }
  cloud.addPods('c')
  t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'c' } } })
})
